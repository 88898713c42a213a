# Becomes root by every call there is.
import os
for do in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setreuid(0, 0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.seteuid(1000)):
    try:
        do()
        print("REACHED")
    except OSError as e:
        print(e)
