# Takes memory in files that have no name.
import os
fds = []
for i in range(200):
    fd = os.memfd_create("x")
    fds.append(fd)
    os.write(fd, b"x" * (16 << 20))
print("REACHED")
