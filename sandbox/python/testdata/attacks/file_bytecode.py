# Writes bytecode beside the modules of the interpreter.
import py_compile, os
try:
    print("REACHED", py_compile.compile(os.__file__, doraise=True))
except OSError as e:
    print(e)
