# Starts a shell.
import os
try:
    if os.system("echo REACHED") == 0:
        print("REACHED")
    print(os.popen("echo REACHED").read())
except OSError as e:
    print(e)
