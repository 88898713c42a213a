# Calls the kernel by the numbers of another machine.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for number in range(0x40000000, 0x40000000 + 600):
    if libc.syscall(number, -1, 0, 0, 0, 0, 0) >= 0:
        print("REACHED", hex(number))
