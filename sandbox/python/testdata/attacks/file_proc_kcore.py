# Reads the kernel's memory and secrets through /proc.
for p in ("/proc/kcore", "/proc/kallsyms", "/proc/kmsg", "/proc/keys", "/proc/cmdline", "/proc/mounts", "/proc/sched_debug"):
    try:
        data = open(p, "rb").read(100)
        if data and p != "/proc/mounts":
            print("REACHED", p, data)
    except OSError as e:
        print(e)
