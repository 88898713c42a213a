# Makes one huge file, sparse and then full.
import os
try:
    with open("/tmp/huge", "wb") as f:
        f.truncate(1 << 40)
    print("REACHED")
except OSError as e:
    print(e)
with open("/tmp/huge2", "wb") as f:
    while True:
        f.write(b"x" * (1 << 20))
