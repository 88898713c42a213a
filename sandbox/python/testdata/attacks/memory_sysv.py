# Takes memory that stays when the process is gone.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("REACHED" if libc.shmget(0x7765, 4096, 0o1666) >= 0 or libc.semget(0x7765, 1, 0o1666) >= 0 or libc.msgget(0x7765, 0o1666) >= 0 else "refused")
