# Reads the command line of the machine's processes. outside: REACHED
import os
print("REACHED" if any(p.isdigit() and int(p) > 5 for p in os.listdir("/proc")) else "alone")
