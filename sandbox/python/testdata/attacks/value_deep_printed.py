# Prints them.
print('{"context_updates": {"a": ' + "[" * 100_000 + "]" * 100_000 + "}}")
