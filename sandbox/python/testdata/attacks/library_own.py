# Loads a library that the code has written.
import ctypes
open("/tmp/evil.so", "wb").write(b"\x7fELF" + bytes(2000))
try:
    ctypes.CDLL("/tmp/evil.so")
    print("REACHED")
except OSError as e:
    print(e)
