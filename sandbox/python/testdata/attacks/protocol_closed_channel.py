# Closes the channel. want: code_killed
import os
os.close(3)
os._exit(0)
