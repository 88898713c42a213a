# Repeats a text until nothing is left.
s = "x"
while True:
    s *= 2
