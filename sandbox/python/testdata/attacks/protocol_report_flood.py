# Writes a report without an end.
import os
os.write(3, b'{"kind":"left","context":{"a":"')
while True:
    os.write(3, b"x" * 65536)
