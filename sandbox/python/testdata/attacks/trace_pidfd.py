# Takes a file out of another process.
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(434, inputs["pid"], 0)
got = libc.syscall(438, fd, 0, 0)
print("REACHED" if fd >= 0 or got >= 0 else "refused")
