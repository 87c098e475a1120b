"""Judging of inline Python by its syntax tree: computing, printing and reading may run unasked."""

import ast
import posixpath
import re

from decklog.core.python_source import parsed
from decklog.guard.policy.programs.hosts import host_of, is_local
from decklog.guard.policy.programs.snippets import check_known_attacks, check_strings
from decklog.guard.policy.programs.use import Judge
from decklog.guard.policy.shell.scope import Scope
from decklog.guard.policy.shell.simple_command import Call
from decklog.guard.policy.shell.words import UNKNOWN, Word

_LONGEST = 40_000
_SHELL = {
    "system",
    "popen",
    "Popen",
    "run",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "getstatusoutput",
}
_FETCHES = {"urllib.request.urlopen", "requests.get", "requests.head", "httpx.get", "httpx.head"}
_DELETES = {"rmtree", "remove", "unlink", "rmdir", "removedirs"}
_OF_TUPLES = {"_asdict", "_fields", "_replace", "_make", "_field_defaults"}
_WALKS = {"glob", "rglob", "iterdir"}
_STATEMENTS = {"execute", "executemany", "executescript"}
_READS = {"read_text", "read_bytes"}
_PATHS = {
    "pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "Path", "os.path.join", "os.path.expanduser", "os.path.expandvars",
    "os.path.abspath", "os.path.realpath", "os.path.normpath", "os.fspath", "str",
}  # fmt: skip
_HOMES = {"pathlib.Path.home", "Path.home", "os.environ.get", "os.getenv"}
_OF_HOME: list[list[str | None]] = [[], ["HOME"]]
_HOME_VARIABLE = re.compile(r"\$(?:HOME\b|\{HOME\})")
_SAME_PLACE = {"expanduser", "resolve", "absolute", "as_posix", "format", "strip"}
# What stands above a directory that is not written by its own name.
_ABOVE = {"~": "/home", ".": ".."}
_WRITES = {"write_text", "write_bytes", "touch", "mkdir"}


def check_python_code(judge: Judge, code: str, scope: Scope, call: Call) -> None:
    """Judge Python code; what does not parse or is not known is asked about."""
    check_known_attacks(judge, code, call)
    check_strings(judge, code, scope, call)
    tree = _parsed(code)
    if tree is None:
        judge.report("inline-code", call.text)
        return
    _Visitor(judge, scope, call).check(tree)


def _parsed(code: str) -> ast.Module | None:
    """Parse code, None if it can't be."""
    if UNKNOWN in code or len(code) > _LONGEST:
        return None
    return parsed(code)


class _Visitor:
    """Look at every import, call and attribute of a piece of code."""

    def __init__(self, judge: Judge, scope: Scope, call: Call) -> None:
        self.judge, self.scope, self.call = judge, scope, call
        self.names = judge.policy.names
        self.modules: dict[str, str] = {}
        self.known: dict[str, str] = {}
        self.called: set[int] = set()
        self.local: set[int] = set()
        self.texts: list[str] = []
        self.files: dict[str, ast.expr] = {}
        """The calls by which names were given to files."""

    def check(self, tree: ast.Module) -> None:
        """Judge the whole code."""
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        self.texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        self._constants(nodes)
        self.called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self._loopback(nodes)
        self._secrets(nodes)
        for node in nodes:
            if isinstance(node, ast.Call):
                self._call(node)
            elif isinstance(node, ast.Attribute):
                self._attribute(node)
            elif isinstance(node, ast.Name) and node.id in self.names["risky_builtins"]:
                self._ask()

    def _secrets(self, nodes: list[ast.AST]) -> None:
        """Judge every path that is put together of parts and leads to a file of secrets or of control as if it were read."""
        inner = {id(part) for node in nodes if isinstance(node, ast.BinOp) for part in (node.left, node.right)}
        for node in nodes:
            if isinstance(node, ast.BinOp | ast.Call | ast.JoinedStr) and id(node) not in inner:
                text = self._text(node)
                if text is not None and self.judge.paths.classify(text, self.scope.cwd) in ("vault", "guard"):
                    self.judge.path("read", Word(text), self.scope, self.call.text)

    def _loopback(self, nodes: list[ast.AST]) -> None:
        """Note the calls that only fetch an address of this machine."""
        for node in nodes:
            if not isinstance(node, ast.Call) or len(node.args) != 1 or self._dotted(node.func) not in _FETCHES:
                continue
            if all(keyword.arg == "timeout" for keyword in node.keywords) and self._is_local(node.args[0]):
                self.local.update(id(part) for part in ast.walk(node.func))

    def _is_local(self, node: ast.expr) -> bool:
        text = self._text(node) or ""
        return text.startswith(("http://", "https://")) and is_local(self.judge.policy, host_of(self.judge.policy, text))

    def _constants(self, nodes: list[ast.AST]) -> None:
        """Note the names that stand for one known path, for the files below one, or for a file."""
        for node in nodes:
            if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
                self.files[node.optional_vars.id] = node.context_expr
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                text = self._text(node.value)
                name = node.targets[0].id
                self.known[name] = text if text is not None and name not in self.known else UNKNOWN
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                call = node.iter
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _WALKS:
                    start = self._text(call.func.value)
                    pattern = (self._text(call.args[0]) if call.args else None) or "x"
                    self.known[node.target.id] = f"{start}/{pattern}" if start is not None else UNKNOWN

    def _text(self, node: ast.expr) -> str | None:
        """Give the text of a constant, of a path made from some, or of a name that stands for one."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self.known.get(name)
            case ast.BinOp(op=ast.Div() | ast.Add() as sign):
                return self._sum(node, sign)
            case ast.JoinedStr(values=parts):
                texts = [self._text(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
                return "".join(UNKNOWN if text is None else text for text in texts)
            case ast.Subscript(value=holder, slice=ast.Constant(value="HOME")) if self._dotted(holder) == "os.environ":
                return "~"
            case ast.Attribute(value=holder, attr="parent"):
                below = self._text(holder)
                return None if below is None else _ABOVE.get(below) or posixpath.dirname(below) or "."
            case ast.Call():
                return self._made(node)
        return None

    def _sum(self, node: ast.BinOp, sign: ast.Div | ast.Add) -> str | None:
        """Give what two parts come to: a path that goes on, or a text."""
        left, right = self._text(node.left), self._text(node.right)
        if left is None or (isinstance(sign, ast.Add) and right is None):
            return None
        return posixpath.join(left, right or UNKNOWN) if isinstance(sign, ast.Div) else left + (right or "")

    def _made(self, node: ast.Call) -> str | None:
        """Give the path that a call makes of known ones."""
        name, texts = self._dotted(node.func) or "", [self._text(part) for part in node.args]
        if name in _HOMES and texts in _OF_HOME:
            return "~"
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        holder = self._text(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if holder is not None and method in _SAME_PLACE:
            return holder
        parts = texts if name in _PATHS else [holder, *texts] if method == "joinpath" else []
        if not parts or parts[0] is None:
            return None
        joined = posixpath.join(parts[0], *(part or UNKNOWN for part in parts[1:]))
        return _HOME_VARIABLE.sub("~", joined) if name == "os.path.expandvars" else joined

    def _ask(self) -> None:
        """Say that a person should see this."""
        self.judge.report("inline-code", self.call.text)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Remember what an imported name stands for; ask about risky names taken out of their module."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.modules[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else alias.name.split(".")[0]
            return
        for alias in node.names:
            full = f"{node.module or ''}.{alias.name}"
            self.modules[alias.asname or alias.name] = full
            if self._is_risky(full) and full not in _FETCHES:
                self._ask()

    def _is_risky(self, full: str) -> bool:
        """Tell whether a dotted name belongs to a risky module and is not one of its safe parts."""
        if full.split(".")[0] not in self.names["risky_modules"]:
            return False
        return not any(full == safe or full.startswith(safe + ".") for safe in self.names["safe_calls"])

    def _dotted(self, node: ast.expr) -> str | None:
        """Give the full dotted name of an expression, None if it is not a plain name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([self.modules.get(node.id, node.id), *reversed(parts)])

    def _attribute(self, node: ast.Attribute) -> None:
        """Judge an attribute: those that reach outside are asked about."""
        if id(node) in self.local:
            return
        full = self._dotted(node)
        root = full.split(".")[0] if full else ""
        if full and self._is_imported(node) and self._is_risky(full):
            # `__version__` and its like only say what is installed, and what is written in capitals is a constant.
            is_constant = node.attr.isupper() and id(node) not in self.called
            if not node.attr.startswith("__") and not is_constant and node.attr != "path":
                self._ask()
            return
        if full and self._is_imported(node) and any(_is_private(part) for part in full.split(".")[1:]):
            # What a module has imported for itself, such as `random._os`, is as risky as the module it stands for.
            self._ask()
            return
        reaches_outside = node.attr.startswith("__") or root in ("", "builtins")
        if node.attr in self.names["risky_methods"] and reaches_outside and not _is_class_of_name(node):
            self._ask()

    def _is_imported(self, node: ast.expr) -> bool:
        """Tell whether an attribute's root is an imported name."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.modules

    def _call(self, node: ast.Call) -> None:
        """Judge a call: what it starts, deletes, writes or opens."""
        self._joined(node)
        function = node.func
        if id(function) in self.local:
            return
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name in _STATEMENTS and "sqlite3" in self.modules.values():
            self._statement(node)
        elif name in _SHELL or name.startswith(("exec", "spawn", "posix_spawn")):
            self._starts(node)
        if self._dotted(function) == "sqlite3.connect":
            self._paths(node, "write")
        if name in _DELETES:
            self._paths(node, "delete")
            self._ask()
        elif name in _READS:
            self._paths(node, "read")
        elif name in _WRITES:
            self._paths(node, "write")
            self._kept(self._targets(node), node)
        elif name == "write":
            self._kept(self._opened(function), node)
        elif name == "open":
            self._open(node)
        elif (name in self.names["risky_methods"] and not self._is_own(function)) or self._dotted(function) in _FETCHES:
            self._ask()

    def _statement(self, node: ast.Call) -> None:
        """Judge a statement for a database by what it says; one that is put together on the way is asked about."""
        text = self._text(node.args[0]) if node.args else None
        if text is None or UNKNOWN in text:
            self._ask()
        else:
            self.judge.role("statement", Word(text), self.call, self.scope)

    def _joined(self, node: ast.Call) -> None:
        """Judge the file of secrets that a path leads to whose parts are given one by one."""
        texts = [part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        joined = "~/" + "/".join(texts)
        if len(texts) > 1 and self.judge.paths.classify(joined, self.scope.cwd) == "vault":
            self.judge.path("read", Word(joined), self.scope, self.call.text)

    def _is_own(self, function: ast.expr) -> bool:
        """Tell whether a method belongs to an imported module that is not risky, or to a plain value."""
        full = self._dotted(function)
        return full is not None and self._is_imported(function) and not self._is_risky(full)

    def _starts(self, node: ast.Call) -> None:
        """Judge the command that a call starts, as a command line or as a list of arguments."""
        texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
        words = [Word(text) for text in texts if isinstance(text, str)]
        if len(words) > 1 and len(words) == len(node.args):
            self.judge.review(Call(words, self.call.text), self.scope)
        for place, argument in enumerate(node.args):
            if place == 0 and isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                self.judge.run_text("shell", Word(argument.value), self.scope, self.call)
            elif isinstance(argument, ast.List | ast.Tuple):
                words = [
                    Word(part.value) if isinstance(part, ast.Constant) and isinstance(part.value, str) else Word(UNKNOWN)
                    for part in argument.elts
                ]
                if words:
                    self.judge.review(Call(words, self.call.text), self.scope)

    def _targets(self, node: ast.Call) -> list[str]:
        """List the known paths that a call is about: the object it is called on, or its first argument."""
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        places = [holder] if holder is not None and self._text(holder) is not None else node.args[:1]
        texts = [self._text(place) for place in places]
        return [text for text in texts if text is not None and UNKNOWN not in text]

    def _paths(self, node: ast.Call, role: str) -> None:
        """Judge the paths that a call deletes or writes."""
        targets = self._targets(node)
        for text in targets:
            self.judge.path(role, Word(text), self.scope, self.call.text)
        if not targets and role == "write":
            self._ask()

    def _opened(self, function: ast.expr) -> list[str]:
        """Give the file that a method writes to: one that is opened right there, or by a name."""
        holder = function.value if isinstance(function, ast.Attribute) else None
        holder = self.files.get(holder.id) if isinstance(holder, ast.Name) else holder
        return self._targets(holder) if isinstance(holder, ast.Call) and getattr(holder.func, "id", "") == "open" else []

    def _kept(self, places: list[str], node: ast.Call) -> None:
        """Remember what is written to a file, and judge it where a build tool runs the file."""
        text = self._text(node.args[0]) if node.args else None
        for place in places if text is not None else ():
            self.scope.wrote(place, Word(text or ""), append=True)
            self.judge.written(place, Word(text or ""), self.scope, self.call)

    def _open(self, node: ast.Call) -> None:
        """Judge `open`: known paths by where they lie, unknown ones only if they are written."""
        modes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
        mode = modes[0].value if modes and isinstance(modes[0], ast.Constant) else "w" if modes else "r"
        role = "write" if set(str(mode)) & set("wax+") else "read"
        targets = self._targets(node)
        for text in targets[:1]:
            self.judge.path(role, Word(text), self.scope, self.call.text)
            if role == "write" and self.judge.paths.is_run_by_tools(text):
                self._texts(text)
        if not targets and role == "write":
            self._ask()

    def _texts(self, path: str) -> None:
        """Ask about a text that would be refused as a command, where the code writes a file that a build tool runs."""
        for text in {text for text in self.texts if " " in text}:
            self.judge.written(path, Word(text), self.scope, self.call)
            if self.judge.refusal("shell", Word(text), self.scope, self.call):
                self.judge.report("written-to-run", self.call.text)


def _is_private(name: str) -> bool:
    """Tell whether a name is a private one of its module; those of named tuples are not."""
    return name.startswith("_") and not name.startswith("__") and name not in _OF_TUPLES


def _is_class_of_name(node: ast.Attribute) -> bool:
    """Tell whether an attribute is `x.__class__`, which alone reaches nothing."""
    return node.attr == "__class__" and isinstance(node.value, ast.Name)
