# Loads modules, another kernel, swaps, restarts.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number, args in ((175, (bytes(64), 64, b"")), (313, (0, b"", 0)), (246, (0, 0, 0, 0)), (320, (0, 0, 0, b"", 0)), (167, (b"/tmp/x", 0)), (169, (0xFEE1DEAD, 672274793, 0, 0)), (163, (b"/tmp/acct",))):
    if libc.syscall(number, *args) >= 0:
        print("REACHED", number)
