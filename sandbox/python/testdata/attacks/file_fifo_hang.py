# Waits for ever for somebody to open the other end.
import os
os.mkfifo("/tmp/fifo")
open("/tmp/fifo").read()
