# Writes into every folder that is shown.
import os
for d in ("/", "/usr", "/usr/lib", "/lib", "/etc", "/dev", "/proc", "/proc/self", "/files", "/bin", "/var", "/home", "/root"):
    try:
        open(os.path.join(d, "x"), "w").write("x")
        print("REACHED", d)
    except OSError:
        pass
