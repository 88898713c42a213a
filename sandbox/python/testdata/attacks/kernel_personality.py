# Turns off what makes memory hard to guess.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("REACHED" if libc.syscall(135, 0x0040000) >= 0 else "refused")
