# Holds the kernel up in the middle of a copy.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("REACHED" if libc.syscall(323, 0o2000000 | 1) >= 0 else "refused")
