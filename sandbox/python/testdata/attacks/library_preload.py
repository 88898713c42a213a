# Sets what the loader reads and starts the interpreter again.
import os, sys
env = {"LD_PRELOAD": "/tmp/evil.so", "LD_LIBRARY_PATH": "/tmp", "PYTHONPATH": "/tmp", "PYTHONSTARTUP": inputs["canary"]}
os.execve(sys.executable, [sys.executable, "-c", "import os; print(os.listdir('/tmp'))"], env)
