# Leaves keys without end.
while True:
    context[str(len(context))] = len(context)
