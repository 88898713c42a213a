# Moves itself out of its cgroup, or makes a release agent.
import os
for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"):
    try:
        open(base + "/cgroup.procs", "w").write("1")
        print("REACHED")
    except OSError as e:
        print(e)
