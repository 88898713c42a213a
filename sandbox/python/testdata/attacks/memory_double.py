# Takes memory by doubling.
l = [0]
while True:
    l = l + l
