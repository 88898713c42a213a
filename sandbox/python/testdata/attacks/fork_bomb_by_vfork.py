# Forks by other system calls.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number, args in ((57, ()), (58, ()), (56, (17, 0, 0, 0, 0)), (56, (0x4000 | 0x100 | 17, 0, 0, 0, 0)), (0x40000039, ())):
    if libc.syscall(number, *args) >= 0:
        print("REACHED", number)
