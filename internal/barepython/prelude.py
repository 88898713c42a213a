import json, sys, traceback

given = json.loads(sys.stdin.read())
result = sys.argv[1]


def tell(**said):
    with open(result, "w") as f:
        json.dump(said, f)


def plain(value, path):
    if value is None or isinstance(value, (bool, int, str)):
        return None
    if isinstance(value, float):
        return None if value == value and abs(value) != float("inf") else (path, "is not a number")
    if isinstance(value, (list, tuple)):
        for i, x in enumerate(value):
            odd = plain(x, path + "[%d]" % i)
            if odd:
                return odd
        return None
    if isinstance(value, dict):
        for k, x in value.items():
            if not isinstance(k, str):
                return (path, "has a key that is no text")
            odd = plain(x, path + "." + k)
            if odd:
                return odd
        return None
    return (path, "is a " + type(value).__name__)


try:
    code = compile(given["code"], "<code>", "exec")
except (SyntaxError, ValueError) as e:
    line = getattr(e, "lineno", 0) or 0
    if given["what"] == "check":
        tell(problems=[{"Line": line, "Message": str(e)}])
    else:
        tell(error=str(e), line=-1)
    sys.exit(0)

if given["what"] == "check":
    tell(problems=[])
    sys.exit(0)

names = {"context": given["context"], "inputs": given["inputs"], "files": given["files"], "json": json, "__name__": "__main__"}
try:
    exec(code, names)
except SystemExit:
    pass
except BaseException as e:
    frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename == "<code>"]
    lines = ["line %d" % f.lineno for f in frames]
    tell(error="%s: %s" % (type(e).__name__, e), line=frames[-1].lineno if frames else 0, traceback=", ".join(lines))
    sys.exit(0)

context, odd = {}, []
for key, value in names["context"].items():
    found = plain(value, "")
    if found:
        odd.append({"key": key, "path": found[0], "why": found[1]})
    else:
        context[key] = value
tell(context=context, odd=odd)
