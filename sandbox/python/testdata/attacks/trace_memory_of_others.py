# Reads the memory of another process.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
buf = (ctypes.c_char * 64)()
iov = (ctypes.c_void_p * 2)(ctypes.addressof(buf), 64)
for pid in (inputs["pid"], 1):
    for call in (310, 311):
        if libc.syscall(call, pid, iov, 1, iov, 1, 0) >= 0:
            print("REACHED", pid)
