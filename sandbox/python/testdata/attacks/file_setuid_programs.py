# Starts programs that run as somebody else.
import os
for p in ("/usr/bin/su", "/usr/bin/sudo", "/bin/mount", "/usr/bin/passwd", "/bin/sh", "/usr/bin/env", "/bin/busybox"):
    try:
        os.execv(p, [p])
    except OSError as e:
        print(e)
