# Replaces the interpreter and a module, for those that come after.
import os, sys
for p in (sys.executable, os.__file__):
    for do in (lambda: open(p, "r+b"), lambda: os.unlink(p), lambda: os.rename(p, p + ".x"), lambda: os.chmod(p, 0o777)):
        try:
            do()
            print("REACHED", p)
        except OSError as e:
            print(e)
