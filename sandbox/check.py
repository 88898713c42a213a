# Finds what is wrong with the code of a job without running it.


def check(job, send):
    import ast
    import builtins
    import json
    import symtable
    import warnings

    warnings.simplefilter("ignore")
    source, found = job["code"], {}

    def report(line, message):
        found.setdefault((line, message))

    try:
        tree = ast.parse(source, "<code>")
        compile(source, "<code>", "exec", dont_inherit=True)
        table = symtable.symtable(source, "<code>", "exec")
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError) as e:
        where = (getattr(e, "text", "") or "").strip()
        message = getattr(e, "msg", None) or str(e) or type(e).__name__
        line = getattr(e, "lineno", 0) or 0
        return send(json.dumps([{"line": line, "message": message + (": " + where if where else "")}]))
    known = set(dir(builtins)) | {"context", "inputs", "files", "json", "__file__", "__builtins__", "__annotations__"}
    if not names(ast, table, tree, known, report):
        for line, name in loads(ast, table, tree, known):
            report(line, "the name %s is not defined" % name)
    for line in rebindings(ast, tree.body):
        report(line, "the name context is assigned; change it in place: context['key'] = value, context.update({...})")
    keys(ast, tree, job, report)
    problems = [{"line": line, "message": message} for line, message in sorted(found)]
    send(json.dumps(problems))


def names(ast, table, tree, known, report):
    # A star import, exec or an assignment to globals() may define any name.
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("exec", "globals", "vars", "locals"):
            return True
    return False


def loads(ast, table, tree, known):
    # The names that are read as globals in some scope and set in none.
    defined, missing = set(known), set()

    def visit(scope, top):
        for s in scope.get_symbols():
            own = top or s.is_declared_global()
            if own and (s.is_assigned() or s.is_imported() or s.is_namespace()):
                defined.add(s.get_name())
        for child in scope.get_children():
            visit(child, False)

    def collect(scope, top):
        for s in scope.get_symbols():
            if s.is_referenced() and (s.is_global() or top) and s.get_name() not in defined:
                missing.add(s.get_name())
        for child in scope.get_children():
            collect(child, False)

    visit(table, True)
    for node in ast.walk(tree):  # := in a comprehension at the top sets a global
        if isinstance(node, ast.NamedExpr) and isinstance(node.target, ast.Name):
            defined.add(node.target.id)
    collect(table, True)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in missing:
            yield node.lineno, node.id


def keys(ast, tree, job, report):
    # Keys of context, inputs and files that are read by a literal and are neither
    # there, nor set, nor asked for anywhere in the code.
    guarded = set(guards(ast, tree))
    for name in ("context", "inputs", "files"):
        seen = set(job[name])
        reads = []
        for node in ast.walk(tree):
            if assigns(ast, node, name):
                seen = None
                break
            seen.update(mentions(ast, node, name))
            if is_subscript(ast, node, name) and isinstance(node.ctx, ast.Load) and id(node) not in guarded:
                reads.append((node.lineno, node.slice.value))
        if seen is None:
            continue
        for line, key in reads:
            if key not in seen:
                what = {"context": "context has no key %r", "inputs": "there is no input %r", "files": "there is no file %r"}[name]
                report(line, what % key)


def rebindings(ast, statements):
    # Where the program, outside of functions and classes, gives the name context
    # another value.
    for s in statements:
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        targets = s.targets if isinstance(s, ast.Assign) else [s.target] if isinstance(s, ast.AnnAssign) and s.value else []
        for t in targets:
            if is_name(ast, t, "context") and not is_name(ast, s.value, "context"):
                yield s.lineno
        for part in ("body", "orelse", "finalbody"):
            yield from rebindings(ast, getattr(s, part, []))
        for h in getattr(s, "handlers", []):
            yield from rebindings(ast, h.body)


def guards(ast, tree):
    # What stands in a try that catches that a key is not there.
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and any(catches(ast, h.type) for h in node.handlers):
            for statement in node.body:
                yield from (id(n) for n in ast.walk(statement))


def catches(ast, kind):
    if kind is None:
        return True
    if isinstance(kind, ast.Tuple):
        return any(catches(ast, k) for k in kind.elts)
    return isinstance(kind, ast.Name) and kind.id in ("KeyError", "LookupError", "Exception", "BaseException")


def assigns(ast, node, name):
    # Whether the name may stand for something else, or get keys that are not
    # written out.
    if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
        return True
    if isinstance(node, ast.arg) and node.arg == name:
        return True
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
        return True
    if isinstance(node, ast.Subscript) and is_name(ast, node.value, name):
        if not isinstance(node.ctx, ast.Load) and not isinstance(node.slice, ast.Constant):
            return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_name(ast, node.func.value, name):
        if node.func.attr == "update":
            return not all(isinstance(a, ast.Dict) and all(isinstance(k, ast.Constant) for k in a.keys) for a in node.args) or any(
                k.arg is None for k in node.keywords
            )
    if isinstance(node, ast.Call) and any(is_name(ast, a, name) for a in node.args):
        # It is handed to code that may set keys; what is built in does not.
        plain = ("len", "str", "repr", "list", "dict", "sorted", "print", "set", "tuple", "iter", "isinstance", "type", "bool", "any", "all")
        return not (isinstance(node.func, ast.Name) and node.func.id in plain or is_dumps(ast, node.func))
    return False


def is_dumps(ast, func):
    return isinstance(func, ast.Attribute) and func.attr in ("dumps", "dump")


def mentions(ast, node, name):
    # The keys that a node sets, or asks for so that it may not be there.
    if is_subscript(ast, node, name) and isinstance(node.ctx, ast.Store):
        yield node.slice.value
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Constant):
        if any(isinstance(op, (ast.In, ast.NotIn)) and is_base(ast, c, name) for op, c in zip(node.ops, node.comparators)):
            yield node.left.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_name(ast, node.func.value, name):
        attr = node.func.attr
        if attr in ("get", "pop", "setdefault", "__contains__") and node.args and isinstance(node.args[0], ast.Constant):
            if attr != "pop" or len(node.args) > 1:
                yield node.args[0].value
        if attr == "update":
            for a in node.args:
                if isinstance(a, ast.Dict):
                    yield from (k.value for k in a.keys if isinstance(k, ast.Constant))
            yield from (k.arg for k in node.keywords if k.arg)


def is_base(ast, node, name):
    # The name itself, or its keys().
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
        node = node.func.value
    return is_name(ast, node, name)


def is_name(ast, node, name):
    return isinstance(node, ast.Name) and node.id == name


def is_subscript(ast, node, name):
    return (
        isinstance(node, ast.Subscript)
        and is_name(ast, node.value, name)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    )
