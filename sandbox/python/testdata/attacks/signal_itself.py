# Ends itself by signals.
import os, signal
for s in (signal.SIGTERM, signal.SIGABRT, signal.SIGSEGV):
    os.kill(os.getpid(), s)
os.abort()
