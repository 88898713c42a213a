# Leaves more in the context than it may.
context["a"] = ["x" * 1000] * 200_000
