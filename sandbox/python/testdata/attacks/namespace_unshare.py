# Makes namespaces of its own, in which it would be root.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x10000000, 0x20000, 0x40000000, 0x8000000, 0x4000000, 0x20000000, 0x2000000, 0x80, 0x10000000 | 0x20000):
    if libc.unshare(flag) == 0:
        print("REACHED", hex(flag))
