# Leaves a number that JSON does not have. want: code_value_invalid
context["a"] = float("nan")
