"""Calls in Python that run what others wrote: found in its syntax tree, by whatever name they were imported."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_RUNNERS = ("run", "call", "check_call", "check_output", "Popen", "popen")
_SHELLS = (
    "os.system",
    "os.popen",
    "os.popen2",
    "os.popen3",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
    "commands.getoutput",
    "commands.getstatusoutput",
    "popen2.popen2",
)
# What runs a text in a shell of another machine, or of a container.
_REMOTE = ("exec_command", "exec_run", "sudo", "run_command")
_LOADERS = (
    "pickle.load",
    "pickle.loads",
    "pickle.Unpickler",
    "cPickle.load",
    "cPickle.loads",
    "dill.load",
    "dill.loads",
    "marshal.load",
    "marshal.loads",
    "shelve.open",
    "jsonpickle.decode",
    "torch.load",
    "joblib.load",
    "cloudpickle.load",
    "cloudpickle.loads",
    "pandas.read_pickle",
    "_pickle.load",
    "_pickle.loads",
    "cPickle.Unpickler",
    "dill.Unpickler",
    "jsonpickle.loads",
    "jsonpickle.unpickler.decode",
    "sklearn.externals.joblib.load",
    "pickle5.load",
    "pickle5.loads",
)
# How a program talks with a process that it started, and by what it may be talked to by others.
_OWN_PROCESSES = (
    "os.fork",
    "os.pipe",
    "sys.stdin.buffer",
    "sys.stdout.buffer",
    "multiprocessing.Pipe",
    "multiprocessing.Process",
)
_OTHERS = frozenset(
    (
        *("socket", "socketserver", "ssl", "http", "urllib", "xmlrpc", "requests", "httpx", "aiohttp", "flask", "django"),
        *("fastapi", "starlette", "tornado", "bottle", "websockets", "zmq", "redis", "pika", "kafka", "celery", "boto3"),
        *("paramiko", "base64"),
    )
)
_YAML = ("yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.unsafe_load_all", "yaml.full_load")
_SAFE_LOADERS = ("SafeLoader", "CSafeLoader", "BaseLoader")
_STATEMENTS = (
    *("execute", "executemany", "executescript", "raw", "text", "query", "read_sql", "read_sql_query"),
    *("fetch", "fetchrow", "fetchval", "fetch_all", "fetch_one", "scalar", "scalars", "fetchone", "fetchall", "first"),
    *(
        "execute_sql",
        "executeSQL",
        "exec_driver_sql",
        "sql",
        "RawSQL",
        "mogrify",
        "copy_expert",
        "run_query",
        "query_df",
        "cursor_execute",
    ),
    *("read_sql_table", "iterate", "execute_async", "exec_sql"),
)
_SHELL_PROGRAMS = ("sh", "bash", "dash", "zsh", "/bin/sh", "/bin/bash")
_OF_SCHEMAS = ("create ", "drop ", "alter ", "grant ", "revoke ")
_AFTER = re.compile(
    r"(?i)(?:\b(?:from|into|table|update|join|trigger|index|database|schema|select|view|exists|on|distinct|pragma|column)\s+"
    r"|[\".]\s*|\bpragma_\w+\('|(?<!values )(?<!values)(?<!\bin )(?<!\bin)\(\s*|^\s*,?\s*)$"
)
# Names and calls of which nothing of anybody else's comes: marks for values, quoted names, numbers.
_MARKS = re.compile(r"(?i)^(?:marks?|placeholders?|params_sql|columns?_sql|qmarks|\w*_?placeholders?|\w*_marks|binds?)$")
_SAFE_CALL = re.compile(r"(?i)quot|escap|ident|literal|^len$|^int$|^float$|sanit|placeholder|marks")
_BUILTINS = ("eval", "exec", "__import__")
_SQL = re.compile(
    r"(?is)^\W*(?:select\b|insert\s+into\b|update\b.*\bset\b|delete\s+from\b|replace\s+into\b|with\b.*\bselect\b|(?:drop|alter"
    r"|create|truncate)\s+\w)"
    r"|\bwhere\b.*(?:[=<>]|\bin\b|\blike\b)"
)


@dataclass(frozen=True)
class Danger:
    """A dangerous call, with the lines that it stands on. A `command` that is written out there is judged as one."""

    kind: str
    text: str
    remedy: str
    first: int
    last: int
    command: str | None = None
    is_minor: bool = False


def dangers(tree: ast.Module) -> Iterator[Danger]:
    """Find the dangerous calls of a module."""
    names = names_of(tree)
    for scope in _scopes(tree):
        own = list(_own(scope))
        texts = _texts(own)
        for node in own:
            if isinstance(node, ast.Call):
                found = _danger(node, names, texts)
                if found is not None:
                    command = _written_out(node) if found[0] == "shell" else None
                    is_minor = (found[0] == "sql" and _names_tables(node, _once(own, texts))) or (
                        found[0] == "unpickling" and _is_own_talk(tree, names, dotted(node.func, names) or "")
                    )
                    yield Danger(*found, node.lineno, node.end_lineno or node.lineno, command, is_minor)


_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


def _scopes(tree: ast.Module) -> Iterator[_Scope]:
    for node in ast.walk(tree):
        if isinstance(node, _Scope):
            yield node


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Give the nodes of a scope without those of the functions in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, _Scope):
            yield node
            yield from _own(node)
        else:
            for one in (*node.decorator_list, *node.args.defaults) if not isinstance(node, ast.Module) else ():
                yield one
                yield from _own(one)


def _texts(nodes: list[ast.AST]) -> dict[str, ast.expr]:
    """Give the texts that names of a scope are set to and that have values put into them, step by step too."""
    found: dict[str, ast.expr] = {}
    for node in nodes:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if is_put_together(value) or (name not in found and _is_text(value)):
                    found[name] = value
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value) if name in found:
                found[name] = ast.copy_location(ast.BinOp(found[name], ast.Add(), value), node)
            case _:
                pass
    return {name: value for name, value in found.items() if is_put_together(value)}


def _once(nodes: list[ast.AST], texts: dict[str, ast.expr]) -> dict[str, ast.expr]:
    """Give those of these texts whose names are set only once, so that nothing else can be meant by them."""
    names = Counter(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return {name: value for name, value in texts.items() if names[name] == 1}


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def names_of(tree: ast.Module) -> dict[str, str]:
    """Give what each name of a module stands for: what was imported under it, or what it was set to be another name of."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                one.asname or one.name.partition(".")[0]: one.name if one.asname else one.name.partition(".")[0]
                for one in node.names
            }
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    # A function of the module's own is not the one that comes with Python.
    names |= {name: f".{name}" for name in defined & set(_BUILTINS)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            said = dotted(node.value, names)
            if said is not None and said != node.targets[0].id:
                names[node.targets[0].id] = said
    return names


def dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    """Give the full name that an expression stands for; None when it is not a name."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value, names)
        return None if inner is None else f"{inner}.{node.attr}"
    if isinstance(node, ast.Call):
        return _fetched(node, names)
    return None


def _fetched(node: ast.Call, names: dict[str, str]) -> str | None:
    """Give what `__import__("os")`, `import_module("os")` and `getattr(os, "system")` stand for."""
    called = dotted(node.func, names)
    texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    if called in ("__import__", "builtins.__import__", "importlib.import_module") and texts:
        return texts[0]
    if called in ("getattr", "builtins.getattr") and len(node.args) >= 2 and texts:
        inner = dotted(node.args[0], names)
        return None if inner is None else f"{inner}.{texts[0]}"
    return None


def _danger(node: ast.Call, names: dict[str, str], texts: dict[str, ast.expr]) -> tuple[str, str, str] | None:
    called = (dotted(node.func, names) or "").removeprefix("builtins.")
    if called in ("eval", "exec"):
        return (
            "eval",
            f"{called} runs a text as code",
            "Read the text by what it may be: ast.literal_eval, json, a table of functions.",
        )
    if called in _SHELLS:
        return "shell", f"{called} gives a text to a shell", "Give a list of arguments to subprocess.run."
    if called.startswith(("subprocess.", "asyncio.create_subprocess_exec", "os.exec", "os.spawn", "os.posix_spawn")) and (
        _of_shell(node) is not None
    ):
        return "shell", f"{called} gives a text to a shell", "Name the program itself, and its arguments."
    if called.startswith(("subprocess.", "asyncio.create_subprocess_shell")) and (
        called.endswith("_shell") or _is_true(node, "shell")
    ):
        return "shell", f"{called} gives a text to a shell", "Leave shell=True away, and give a list of arguments."
    if _is_true(node, "shell") and (called or getattr(node.func, "attr", "")).rpartition(".")[2] in _RUNNERS:
        return "shell", "it gives a text to a shell", "Leave shell=True away, and give a list of arguments."
    if called in _LOADERS and not _is_true(node, "weights_only") and not _is_own_pickle(node, names):
        return "unpickling", f"{called} runs whatever the data says", "Keep data as JSON, or in a table."
    if called in _YAML and not _has_safe_loader(node):
        return "unpickling", f"{called} makes any object that the text names", "Use yaml.safe_load."
    last = called.rpartition(".")[2] or getattr(node.func, "attr", "")
    if last in _REMOTE and node.args and is_joined(node.args[0]):
        return "shell", f"{last} gives a text that is put together to a shell", "Quote each value: shlex.quote."
    if last in _STATEMENTS and (isinstance(node.func, ast.Attribute) or last in ("text", "RawSQL")) and _statement(node, texts):
        return "sql", f"{called or last} gets a statement that is put together from values", "Bind the values as parameters."
    return None


def _statement(node: ast.Call, texts: dict[str, ast.expr]) -> bool:
    """Say whether a call is given a statement with values in it, there or in a name that was set to one."""
    given = [*node.args[:1], *(word.value for word in node.keywords if word.arg in ("sql", "query", "statement", "operation"))]
    return any(is_put_together(one) or (isinstance(one, ast.Name) and one.id in texts) for one in given)


def is_joined(node: ast.expr) -> bool:
    """Say whether a text, whatever it is, has values put into it that are not quoted first."""
    match node:
        case ast.JoinedStr(values=values):
            said = [ast.unparse(one) for one in values if isinstance(one, ast.FormattedValue)]
            return any("quote(" not in one for one in said)
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            return not _is_constant(node) and "quote(" not in ast.unparse(node)
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="format")):
            return "quote(" not in ast.unparse(node)
        case _:
            return False


def _written_out(node: ast.Call) -> str | None:
    """Give the command that a shell is given, where all of it is written there."""
    first = _of_shell(node) or (node.args[0] if node.args else None)
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _of_shell(node: ast.Call) -> ast.expr | None:
    """Give the text that a shell is told to run by its arguments: ["sh", "-c", text]."""
    for words in (node.args, *(one.elts for one in node.args if isinstance(one, ast.List | ast.Tuple))):
        for program, option, text in zip(words, words[1:], words[2:], strict=False):
            if _constant(program) in _SHELL_PROGRAMS and _constant(option) in ("-c", "-lc", "-ec", "-ce"):
                return text
    return None


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _is_own_pickle(node: ast.Call, names: dict[str, str]) -> bool:
    """Say whether what is unpickled was pickled in the same breath, as copies are made and tests look at them."""
    inner = node.args[0] if node.args else None
    return isinstance(inner, ast.Call) and (dotted(inner.func, names) or "").endswith(".dumps")


def _is_own_talk(tree: ast.Module, names: dict[str, str], called: str) -> bool:
    """Say whether a module writes what it reads by the same means, and all that it talks with is a process of its own."""
    if any(name.partition(".")[0] in _OTHERS for name in names.values()):
        return False
    used = {dotted(node, names) for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)}
    library = called.rpartition(".")[0]
    return bool({f"{library}.dump", f"{library}.dumps"} & used) and not used.isdisjoint(_OWN_PROCESSES)


def _is_true(node: ast.Call, name: str) -> bool:
    """Say whether a keyword is given as anything that is not plainly false."""
    given = [word.value for word in node.keywords if word.arg == name]
    return any(not (isinstance(value, ast.Constant) and not value.value) for value in given)


def _has_safe_loader(node: ast.Call) -> bool:
    given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "Loader")]
    return any((dotted(one, {}) or "").rpartition(".")[2] in _SAFE_LOADERS for one in given)


def is_put_together(node: ast.expr) -> bool:
    """Say whether a text is SQL that has values written into it."""
    match node:
        case ast.JoinedStr(values=values):
            risky = [one for one in values if isinstance(one, ast.FormattedValue) and not _is_safe(one.value)]
            return bool(risky) and _is_sql(node) and not _only_names(values)
        case ast.BinOp(op=ast.Add()):
            return _is_sql(node) and not all(isinstance(one, ast.Constant) or _is_safe(one) for one in _summands(node))
        case ast.BinOp(op=ast.Mod(), right=right):
            given = right.elts if isinstance(right, ast.Tuple) else [right]
            return _is_sql(node) and not all(_is_safe(one) for one in given)
        case ast.Call(func=ast.Attribute(value=inner, attr="format" | "format_map")):
            return _is_sql(inner)
        case ast.Call(
            func=ast.Attribute(value=ast.Constant(value=str()), attr="join"), args=[ast.List(elts=parts) | ast.Tuple(elts=parts)]
        ):
            return _is_sql(node) and not all(isinstance(one, ast.Constant) for one in parts)
        case ast.Call(func=ast.Attribute(value=inner, attr="replace"), args=[ast.Constant(), value]):
            return _is_sql(inner) and not isinstance(value, ast.Constant)
        case ast.IfExp(body=first, orelse=second):
            return is_put_together(first) or is_put_together(second)
        case _:
            return False


def _names_tables(node: ast.Call, texts: dict[str, ast.expr]) -> bool:
    """Say whether all that is put into a statement are names of tables and columns, which no parameter can stand for."""
    first = node.args[0] if node.args else None
    given = texts.get(first.id) if isinstance(first, ast.Name) else first
    if not isinstance(given, ast.JoinedStr):
        return False
    before = ""
    for one in given.values:
        if isinstance(one, ast.FormattedValue) and not _is_safe(one.value) and _AFTER.search(before) is None:
            return False
        before = str(one.value) if isinstance(one, ast.Constant) else "?"
    return True


def _summands(node: ast.expr) -> list[ast.expr]:
    return (
        [*_summands(node.left), *_summands(node.right)]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
        else [node]
    )


def _is_safe(node: ast.expr) -> bool:
    """Say whether nothing of anybody else's can come into a statement by it: marks for values, quoted names, numbers."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper() or _MARKS.search(name) is not None
        case ast.BinOp(op=ast.Mult() | ast.Add(), left=left, right=right):
            return (_is_safe(left) or isinstance(node.op, ast.Mult)) and (_is_safe(right) or isinstance(node.op, ast.Mult))
        case ast.IfExp(body=first, orelse=second):
            return _is_safe(first) and _is_safe(second)
        case ast.JoinedStr(values=values):
            return all(
                isinstance(one, ast.Constant) or (isinstance(one, ast.FormattedValue) and _is_safe(one.value)) for one in values
            )
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[one]):
            parts = (
                [one.elt]
                if isinstance(one, ast.GeneratorExp | ast.ListComp)
                else one.elts
                if isinstance(one, ast.List | ast.Tuple)
                else [one]
            )
            return all(_is_safe(part) or _has_mark(part) for part in parts)
        case ast.Call(func=called):
            return _SAFE_CALL.search(ast.unparse(called)) is not None
        case _:
            return False


def _has_mark(node: ast.expr) -> bool:
    """Say whether a part of a statement has a mark for its value: name = ?."""
    return isinstance(node, ast.JoinedStr) and any(
        isinstance(one, ast.Constant) and re.search(r"\?|%s|:|\$", str(one.value)) for one in node.values
    )


def _only_names(values: list[ast.expr]) -> bool:
    """Say whether a statement only has quoted names put into it, which no parameter can stand for: create database "{name}"."""
    texts = [one.value if isinstance(one, ast.Constant) else None for one in values]
    first = str(texts[0] or "").lstrip().lower()
    around = zip(texts, texts[1:], texts[2:], strict=False)
    are_quoted = all(
        str(before or "").endswith('"') and str(after or "").startswith('"') for before, name, after in around if name is None
    )
    return first.startswith(_OF_SCHEMAS) and texts[-1] is not None and are_quoted


def _is_sql(node: ast.AST) -> bool:
    """Say whether the texts of an expression, in their order, begin as a statement does, or have a condition of one."""
    texts = [one for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    ordered = sorted(texts, key=lambda one: (one.lineno, one.col_offset))
    return _SQL.search("".join(str(one.value) for one in ordered)) is not None


def _is_constant(node: ast.expr) -> bool:
    return all(isinstance(one, ast.BinOp | ast.Constant | ast.operator) for one in ast.walk(node))
