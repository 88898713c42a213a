# Mounts file systems.
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for kind in (b"tmpfs", b"proc", b"sysfs", b"overlay", b"cgroup2", b"bpf", b"devpts"):
    if libc.mount(b"x", b"/tmp", kind, 0, None) == 0:
        print("REACHED", kind)
