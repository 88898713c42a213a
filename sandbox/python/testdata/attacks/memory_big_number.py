# Computes a number that does not end.
x = 10 ** (10 ** 9)
