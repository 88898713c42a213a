# Reads and leaves keys.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number, args in ((250, (0, -3, 1)), (248, (b"user", b"weir", b"x", 1, -3)), (249, (b"user", b"weir", 0, 0))):
    if libc.syscall(number, *args) >= 0:
        print("REACHED", number)
