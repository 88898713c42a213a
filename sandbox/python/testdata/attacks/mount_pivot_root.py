# Changes the root back.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("REACHED" if libc.syscall(155, b".", b".") == 0 else ctypes.get_errno())
