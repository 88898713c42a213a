# Writes to the switches of the kernel.
for p in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/self/oom_score_adj", "/proc/1/oom_score_adj"):
    try:
        open(p, "w").write("1")
        print("REACHED", p)
    except OSError as e:
        print(e)
