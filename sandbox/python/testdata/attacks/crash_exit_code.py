# Ends with a code. want: code_failed
import os
os._exit(3)
