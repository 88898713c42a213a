# Makes them by cloning itself.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x10000000, 0x20000000, 0x10000 | 0x10000000, 0x10000 | 0x100 | 0x800 | 0x20000):
    if libc.syscall(56, flag | 17, 0, 0, 0, 0) >= 0:
        print("REACHED", hex(flag))
