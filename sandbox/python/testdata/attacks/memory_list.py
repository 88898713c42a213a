# Takes memory in a list.
l = []
while True:
    l.append("x" * 1_000_000 + str(len(l)))
