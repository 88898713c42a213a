# Maps itself to root.
import os
for name, text in (("setgroups", "deny"), ("uid_map", "0 0 1"), ("gid_map", "0 0 1")):
    try:
        open("/proc/self/" + name, "w").write(text)
        print("REACHED", name)
    except OSError as e:
        print(e)
