# Learns whose account it runs in.
import os, getpass
try:
    print(getpass.getuser())
except (KeyError, OSError, ImportError) as e:
    print(e)
print("REACHED" if os.getuid() == 0 or os.geteuid() == 0 or os.getgid() == 0 else "nobody")
