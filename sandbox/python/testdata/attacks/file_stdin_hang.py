# Reads its standard input for ever.
import sys, time
while True:
    if sys.stdin.read():
        print("REACHED")
    time.sleep(0.01)
