# Reads and writes /sys. outside: REACHED
import os
print("REACHED", os.listdir("/sys")[:2])
