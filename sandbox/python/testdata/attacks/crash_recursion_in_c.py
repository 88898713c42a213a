# Overflows the stack of the machine.
import sys
sys.setrecursionlimit(10 ** 8)
def f():
    return [f()]
f()
