# Sends signals to who started it.
import os, signal
for s in (signal.SIGTERM, signal.SIGSTOP, signal.SIGINT, signal.SIGUSR1):
    for pid in (inputs["pid"], -inputs["pid"], os.getppid()):
        if pid == 0:
            continue
        try:
            os.kill(pid, s)
            print("REACHED", pid)
        except OSError as e:
            print(e)
