# Kills everything it may, and then who started it.
import os, signal
for pid in (-1, 0, 1, os.getppid(), inputs["pid"]):
    try:
        os.kill(pid, 0 if pid == 0 else signal.SIGKILL)
    except OSError as e:
        print(e)
print("still here")
