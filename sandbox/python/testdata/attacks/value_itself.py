# Leaves a value that holds itself. want: code_value_invalid
context["a"] = context
