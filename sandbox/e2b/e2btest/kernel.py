# An interpreter like the one in a cloud sandbox: it keeps its names from one
# execution to the next, tells the value of a last expression, and streams what
# is written as it is written. A line of JSON in, {"code"}; lines of JSON out.
import ast
import json
import os
import sys
import traceback

ways_in, ways_out = os.dup(0), os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)


def tell(**frame):
    data = (json.dumps(frame) + "\n").encode()
    while data:
        data = data[os.write(ways_out, data) :]


class Stream:
    encoding, errors = "utf-8", "replace"

    def __init__(self, name):
        self.name = name

    def write(self, text):
        for i in range(0, len(text), 4000):  # pieces do not end where lines do
            tell(type=self.name, text=text[i : i + 4000], timestamp="2026-01-01T00:00:00Z")
        return len(text)

    def flush(self):
        pass

    def isatty(self):
        return False


def execute(code, names):
    tree = ast.parse(code, "<cell>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
        if value is not None:
            text = repr(value)
            if text[:1] in "'\"" and text[:1] == text[-1:]:
                text = text[1:-1]  # as the cloud's does
            tell(type="result", text=text, is_main_result=True, extra={})


def main():
    sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
    names = {"__name__": "__main__"}
    count = 0
    for line in os.fdopen(ways_in, encoding="utf-8"):
        count += 1
        tell(type="number_of_executions", execution_count=count)
        try:
            execute(json.loads(line)["code"], names)
        except BaseException as e:
            tell(type="error", name=type(e).__name__, value=str(e), traceback=traceback.format_exc())
        tell(type="idle")


main()
