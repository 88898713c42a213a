# Leaves a number with many digits. want: code_value_invalid
context["a"] = 1 << 100_000
