# Loads programs into the kernel.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number, args in ((321, (0, bytes(128), 128)), (298, (bytes(128), 0, -1, -1, 0)), (323, (0,)), (317, (1, 0, None))):
    if libc.syscall(number, *args) >= 0:
        print("REACHED", number)
