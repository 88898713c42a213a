# Runs in the sandbox's interpreter: starts the job's code in a process of its
# own, passes on what that writes, ends it when its time or its room for output
# is up, and leaves in weir/end.json how it ended.


def _weir_run(seconds, most):
    import codecs
    import json
    import os
    import selectors
    import signal
    import subprocess
    import sys
    import time

    os.makedirs("weir/work", exist_ok=True)
    if os.path.isdir("weir/files"):
        for name in os.listdir("weir/files"):
            os.chmod(os.path.join("weir/files", name), 0o444)
    environment = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": os.getcwd(), "LANG": "C.UTF-8"}
    environment.update(PYTHONIOENCODING="utf-8", PYTHONHASHSEED="0")
    told, tell = os.pipe()
    began = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, "-B", "../program.py", "../job.json", str(tell)],
        cwd="weir/work",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(tell,),
        start_new_session=True,
    )
    os.close(tell)
    decoder = codecs.getincrementaldecoder("utf-8")
    report, end = bytearray(), "done"
    ways = selectors.DefaultSelector()
    for pipe, to in ((child.stdout, sys.stdout), (child.stderr, sys.stderr)):
        ways.register(pipe, selectors.EVENT_READ, [to, decoder("replace"), most])
    told = os.fdopen(told, "rb", buffering=0)
    ways.register(told, selectors.EVENT_READ, None)
    over = None  # when the code's process was seen to have ended
    while ways.get_map() and end == "done":
        left = began + seconds - time.monotonic()
        if left <= 0:
            end = "time"
            break
        if over is None and child.poll() is not None:
            over = time.monotonic()
        ready = ways.select(min(left, 0.05))
        if over is not None and not ready:
            break  # what still holds the pipes is not the code
        for key, _ in ready:
            data = os.read(key.fd, 65536)
            if not data:
                ways.unregister(key.fileobj)
            elif key.data is None:
                report += data
            else:
                to, decode, room = key.data
                key.data[2] = room - len(data)
                to.write(decode.decode(data[:room]))
                if len(data) > room:
                    end = "output"
    took = time.monotonic() - began
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except OSError:
        pass
    code = child.wait()
    sys.stdout.flush()
    sys.stderr.flush()
    with open("weir/end.json", "w") as f:
        json.dump({"end": end, "exit": code, "took": took, "report": report.decode("utf-8", "replace")}, f)
