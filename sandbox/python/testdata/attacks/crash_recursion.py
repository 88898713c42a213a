# Calls itself. want: code_failed
def f():
    return f()
f()
