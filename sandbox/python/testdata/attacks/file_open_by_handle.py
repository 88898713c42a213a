# Opens files by handles, past every path.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
handle = (ctypes.c_char * 24)(*bytes([8, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]))
fd = libc.open_by_handle_at(-100, handle, 0)
print("REACHED" if fd >= 0 else "errno %d" % ctypes.get_errno())
