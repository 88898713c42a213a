# Writes to a file that it was given to read.
import os
path = files["note"]
for mode in ("w", "a", "r+"):
    try:
        open(path, mode).write("changed")
        print("REACHED", mode)
    except OSError as e:
        print(e)
for do in (os.unlink, lambda p: os.chmod(p, 0o777), lambda p: os.rename(p, "/tmp/x"), lambda p: os.truncate(p, 0)):
    try:
        do(path)
        print("REACHED")
    except OSError as e:
        print(e)
