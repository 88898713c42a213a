# Reads the environment of the first process, and of its parent.
import os
for pid in (1, os.getpid(), os.getppid(), inputs["pid"]):
    try:
        data = open("/proc/%d/environ" % pid, "rb").read()
        if b"canary" in data:
            print("REACHED", data)
    except OSError as e:
        print(e)
