# Prints a million updates.
for i in range(20_000):
    print('{"context_updates": {"a%d": 1}}' % i)
