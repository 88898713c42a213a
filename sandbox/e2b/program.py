

def weir_main(do):
    # The beginning of the process that runs the code: its limits, and the job.
    import json
    import os
    import sys

    with open(sys.argv[1], encoding="utf-8") as f:
        job = json.load(f)
    job["files"] = {name: os.path.abspath(path) for name, path in job["files"].items()}
    tell = os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")
    os.set_inheritable(tell.fileno(), False)
    try:
        import resource

        for what, value in (("RLIMIT_AS", job["memory"]), ("RLIMIT_FSIZE", job["disk"]), ("RLIMIT_CORE", 0)):
            resource.setrlimit(getattr(resource, what), (value, value))
    except ImportError:
        pass

    for stream in (sys.stdout, sys.stderr):  # what is written before a kill is not lost
        stream.reconfigure(line_buffering=True)

    def send(text):
        tell.write(text)
        tell.flush()

    do(job, send)


