# Leaves a core file, or what has it written.
import ctypes, resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
try:
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    print("REACHED")
except (OSError, ValueError) as e:
    print(e)
ctypes.memset(0, 1, 1)
