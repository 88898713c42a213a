# Learns about other processes by comparing.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("REACHED" if libc.syscall(312, 1, inputs["pid"], 0, 0, 0) >= 0 else "refused")
