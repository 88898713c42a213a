# Starts a library as a program.
import os, glob
for p in glob.glob("/usr/lib/*/libc.so.6") + glob.glob("/lib/*/libc.so.6"):
    try:
        os.execv(p, [p])
    except OSError as e:
        print(e)
