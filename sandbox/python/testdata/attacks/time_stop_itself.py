# Stops itself so that it cannot end. want: code_timeout
import os, signal, time
os.kill(os.getpid(), signal.SIGSTOP)
os.kill(0, signal.SIGSTOP)
time.sleep(3600)
