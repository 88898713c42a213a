# Opens folders relative to every file number.
import os
for fd in range(0, 64):
    try:
        os.open("../../../../etc/passwd", os.O_RDONLY, dir_fd=fd)
        print("REACHED", fd)
    except OSError:
        pass
