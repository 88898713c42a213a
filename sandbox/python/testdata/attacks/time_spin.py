# Computes for ever. want: code_timeout
while True:
    pass
