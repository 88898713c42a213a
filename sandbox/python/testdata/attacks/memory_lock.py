# Locks memory so that it cannot be paged out.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("REACHED" if libc.mlockall(3) == 0 else ctypes.get_errno())
