# Goes through the parent's working directory.
import os
for pid in (0, 1, 2, os.getppid(), inputs["pid"]):
    try:
        print("REACHED", os.listdir("/proc/%d/cwd/../../../../../../etc" % pid))
    except OSError as e:
        print(e)
