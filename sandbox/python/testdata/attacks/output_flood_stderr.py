# Prints for ever to the other stream.
import sys
while True:
    sys.stderr.write("x" * 10000)
