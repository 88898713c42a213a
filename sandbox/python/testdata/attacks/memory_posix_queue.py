# Leaves a message queue behind.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("REACHED" if libc.syscall(240, b"weir", 0o102, 0o600, None) >= 0 else ctypes.get_errno())
