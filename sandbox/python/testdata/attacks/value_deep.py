# Leaves lists in lists in lists. want: code_value_invalid
x = []
for _ in range(100_000):
    x = [x]
context["a"] = x
