# Has the machine's program for cores started by a crash: a limit of 0 lets it. want: code_killed
import ctypes, resource
for limit in (0, 1 << 20):
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
        print("REACHED")
    except (OSError, ValueError) as e:
        print(e)
print(resource.getrlimit(resource.RLIMIT_CORE))
ctypes.memset(0, 1, 1)
