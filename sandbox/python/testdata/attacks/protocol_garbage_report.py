# Writes what is no report. want: code_killed
import os
os.write(3, b"\x00\xff{{{{")
os._exit(0)
