# What stands around the code of a job: it hands in the names, runs the code and
# says how it left things. It is given a job and a function that sends one text.
# Modules are imported late, since each costs a run milliseconds.


def run(job, send):
    # Memory that is freed when the code has used up its own: without it the interpreter
    # may loop for ever over the exception that says so. The second part is for the report
    # that the first did not suffice.
    reserve = [bytearray(1 << 20), bytearray(4 << 20)]
    quote = quoter()
    short = False
    try:
        return send(report(job, quote, reserve))
    except MemoryError:
        short = True
    except BaseException as e:
        why = type(e).__name__
    reserve.clear()
    if short:
        return send(fault(quote, "memory", "MemoryError: too little is free to take what the code left in context", "", 0))
    send(fault(quote, "exception", "what the code left cannot be read: " + why, "", 0))


def report(job, quote, reserve):
    import sys
    import types

    name = "<code>"
    source = job["code"]
    main = types.ModuleType("__main__")
    given = job["context"]
    main.__dict__.update(context=given, inputs=job["inputs"], files=job["files"])
    if "json" in source:
        import json

        main.json = json
    try:
        code = compile(source, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as e:
        line = getattr(e, "lineno", 0) or 0
        text = getattr(e, "msg", None) or str(e) or type(e).__name__
        where = (getattr(e, "text", "") or "").rstrip()
        return fault(quote, "syntax", text + (": " + where.strip() if where else ""), "", line)
    sys.modules["__main__"] = main
    sys.argv = [""]
    problem = None
    try:
        exec(code, main.__dict__)
    except SystemExit as e:
        reserve.pop()
        problem = leaving(e, name, quote)
    except BaseException as e:
        reserve.pop()
        problem = failure(e, name, source, quote, job.get("limit", 8192))
    else:
        reserve.pop()
    if problem is None:
        problem = end(sys, name, source, quote)
    if problem is None and main.__dict__.get("context") is not given:
        problem = rebound(main.__dict__.get("context"), source, quote)
    return problem or left(given, quote, job.get("depth", 200))


def rebound(context, source, quote):
    # The update is what the code did to the dict it was given; another one under
    # the name would delete every key that it does not have.
    line = 0
    try:
        import ast

        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and node.id == "context" and not isinstance(node.ctx, ast.Load):
                line = node.lineno
                break
    except BaseException:
        pass
    return fault(quote, "context", "the code assigned %s to the name context" % kind_of(context), "", line)


def quoter():
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import py_encode_basestring_ascii as encode_basestring_ascii
    return encode_basestring_ascii


def end(sys, name, source, quote):
    # What a program does when it has come to its end: threads are waited for,
    # exit functions run, output is written.
    try:
        threading = sys.modules.get("threading")
        if threading is not None:
            threading._shutdown()
        import atexit

        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except BaseException as e:
        return failure(e, name, source, quote, 8192)


def leaving(e, name, quote):
    code = e.code
    if code is None or code is False or code == 0:
        return None
    line = lines_of(e, name)[1]
    if isinstance(code, int):
        return fault(quote, "exit", "the code ended itself with the exit code %d" % code, "", line)
    return fault(quote, "exit", "the code ended itself: %s" % (code,), "", line)


def fault(quote, kind, message, trace, line):
    message = message if len(message) <= 4000 else message[:2000] + " ... " + message[-2000:]
    return '{"kind":%s,"message":%s,"traceback":%s,"line":%d}' % (quote(kind), quote(message), quote(trace), line)


def lines_of(e, name):
    # The traceback from the code's own first frame on, and its innermost line.
    tb, line = e.__traceback__, 0
    while tb is not None and tb.tb_frame.f_code.co_filename != name:
        tb = tb.tb_next
    at = tb
    while at is not None:
        if at.tb_frame.f_code.co_filename == name:
            line = at.tb_lineno or line
        at = at.tb_next
    return tb, line


def failure(e, name, source, quote, limit):
    tb, line = lines_of(e, name)
    kind = "memory" if isinstance(e, MemoryError) else "exception"
    title = type(e).__name__
    try:
        text = str(e)
        title = title + ": " + text if text else title
    except BaseException:
        pass
    if kind == "memory":
        e.__traceback__ = None
        return fault(quote, kind, title, "", line)
    try:
        import linecache
        import traceback

        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        trace = "".join(traceback.TracebackException(type(e), e, tb, compact=True).format())
    except BaseException:
        trace = title
    if len(trace) > limit:
        trace = trace[: limit // 2] + "\n  ...\n" + trace[-limit // 2 :]
    return fault(quote, kind, title, trace, line)


class Odd(Exception):
    def __init__(self, why):
        self.why = why
        self.path = []


def left(context, quote, depth):
    good, odd = [], []
    for key, value in dict.items(context):
        if not isinstance(key, str):
            odd.append((repr(key)[:200], "", "has a key that is %s and not a text" % kind_of(key)))
            continue
        try:
            good.append(text(key, quote) + ":" + encode(value, quote, depth))
        except Odd as e:
            path = "".join(reversed(e.path))
            odd.append((key.encode("utf-8", "replace").decode(), path, e.why))
    return '{"kind":"left","context":{%s},"odd":[%s]}' % (
        ",".join(good),
        ",".join('{"key":%s,"path":%s,"why":%s}' % (quote(k), quote(p), quote(w)) for k, p, w in odd),
    )


def kind_of(v):
    name = type(v).__name__
    return "None" if v is None else ("an " if name[:1] in "aeiouAEIOU" else "a ") + name


def text(v, quote):
    if not str.isascii(v):
        try:
            str.encode(v, "utf-8")
        except UnicodeEncodeError:
            raise Odd("is a text with half a character (a lone surrogate)") from None
    return quote(v)


def encode(v, quote, depth):
    if v is None:
        return "null"
    if v is True:
        return "true"
    if v is False:
        return "false"
    if isinstance(v, str):
        return text(v, quote)
    if isinstance(v, int):
        if not -(2**63) <= v < 2**63:
            raise Odd("is a whole number that does not fit 64 bits")
        return int.__repr__(v)
    if isinstance(v, float):
        if v != v or v in (float("inf"), float("-inf")):
            raise Odd("is " + ("NaN" if v != v else "Infinity" if v > 0 else "-Infinity"))
        return float.__repr__(v)
    if isinstance(v, (list, tuple)):
        return "[" + ",".join(members(v, quote, depth)) + "]"
    if isinstance(v, dict):
        return "{" + ",".join(entries(v, quote, depth)) + "}"
    raise Odd("is " + kind_of(v))


def members(v, quote, depth):
    if depth <= 0:
        raise Odd("is nested too deep, or holds itself")
    out = []
    for i, e in enumerate(tuple(v)):
        try:
            out.append(encode(e, quote, depth - 1))
        except Odd as odd:
            if len(odd.path) < 20:
                odd.path.append("[%d]" % i)
            raise
    return out


def entries(v, quote, depth):
    if depth <= 0:
        raise Odd("is nested too deep, or holds itself")
    out = []
    for k, e in tuple(dict.items(v)):
        if not isinstance(k, str):
            raise Odd("has a key that is %s and not a text" % kind_of(k))
        try:
            out.append(text(k, quote) + ":" + encode(e, quote, depth - 1))
        except Odd as odd:
            if len(odd.path) < 20:
                odd.path.append("[%s]" % quote(k))
            raise
    return out
