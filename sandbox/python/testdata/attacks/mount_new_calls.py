# Mounts by the newer calls.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number, args in (("open_tree", 428, (-100, b"/", 1)), ("move_mount", 429, (-1, b"", -100, b"/tmp", 4)), ("fsopen", 430, (b"tmpfs", 0)), ("fspick", 433, (-100, b"/", 0)), ("mount_setattr", 442, (-100, b"/", 0, bytes(32), 32))):
    if libc.syscall(number, *args) >= 0:
        print("REACHED", name)
