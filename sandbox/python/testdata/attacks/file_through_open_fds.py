# Uses whatever files are open from before.
import os
for fd in range(3, 256):
    try:
        target = os.readlink("/proc/self/fd/%d" % fd)
        os.fstat(fd)
        if not target.startswith(("pipe:", "/proc/")):
            print("REACHED", fd, target)
    except OSError:
        pass
