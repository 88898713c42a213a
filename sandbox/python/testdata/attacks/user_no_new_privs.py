# Checks that it is locked in, and tries to unlock.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 0, 0, 0, 0)
status = open("/proc/self/status").read()
print("held" if "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status else "REACHED")
