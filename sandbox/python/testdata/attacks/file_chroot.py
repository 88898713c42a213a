# Changes its root and climbs out of it.
import os
os.mkdir("/tmp/x")
try:
    os.chroot("/tmp/x")
    print("REACHED")
except OSError as e:
    print(e)
