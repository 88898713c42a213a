# Starts a program without forking.
import os, sys
try:
    os.posix_spawn(sys.executable, [sys.executable, "-c", "print('REACHED')"], {})
    print("REACHED")
except OSError as e:
    print(e)
