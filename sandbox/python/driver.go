package python

// The program reads from stdin: the length of the compiled harness on a line, the harness, and the job as JSON. The
// report is written to descriptor 3, which only the harness knows.

// bootProgram is the program with which the interpreter is started.
const bootProgram = `import sys,marshal;_=sys.stdin.buffer;exec(marshal.loads(_.read(int(_.readline()))),{"__name__":"weir","source":_})`

// driverHead reads the job without the module json, because importing it would take several milliseconds.
const driverHead = `
def job_and_send():
    import posix, sys
    text = source.read().decode()
    try:
        from _json import make_scanner
    except ImportError:
        import json
        job = json.loads(text)
    else:
        class Plain:
            strict = False
            object_hook = object_pairs_hook = None
            parse_float = float
            parse_int = int
            parse_constant = float
            memo = {}
        job = make_scanner(Plain)(text, 0)[0]
    posix.environ.clear()
    import _thread
    _thread.stack_size(2 << 20)
    write = posix.write
    def send(report):
        data = memoryview(report.encode("ascii"))
        while data:
            data = data[write(3, data):]
    sys.path.extend(job["path"])
    sys.stdout.reconfigure(line_buffering=True)
    return job, send
`

const runDriver = driverHead + `
def main():
    import posix
    leave = posix._exit
    try:
        args = job_and_send()
    except MemoryError:
        args = None
    if args is None:
        posix.write(3, b'{"kind":"memory","message":"MemoryError: too little memory for the context and the inputs"}')
        leave(0)
    run(*args)
    leave(0)
main()
`

const checkDriver = driverHead + `
def main():
    check(*job_and_send())
main()
`
