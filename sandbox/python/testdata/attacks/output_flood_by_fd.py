# Writes to every file that is open.
import os
data = b"x" * 65536
while True:
    for fd in range(1, 8):
        try:
            os.write(fd, data)
        except OSError:
            pass
