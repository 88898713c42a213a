# Makes a socket by the number of the system call.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number in (41, 198, 0x40000029):
    if libc.syscall(number, 2, 1, 0) >= 0:
        print("REACHED", number)
