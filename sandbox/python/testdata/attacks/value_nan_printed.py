# Prints one. want: code_value_invalid
print('{"context_updates": {"a": {"b": [1, NaN]}}}')
