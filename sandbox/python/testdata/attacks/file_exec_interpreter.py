# Starts the interpreter anew, free of the harness; the sandbox stays.
import sys, os
code = "import os\ntry:\n  print('REACHED', open(%r).read())\nexcept OSError as e:\n  print(e)" % inputs["canary"]
os.execv(sys.executable, [sys.executable, "-c", code])
