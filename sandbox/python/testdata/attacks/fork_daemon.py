# Leaves a daemon behind, in a session of its own.
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
        open(inputs["dir"] + "/daemon", "w").write("x")
