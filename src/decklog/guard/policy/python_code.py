"""Inline Python, judged by its syntax tree: computing, printing and reading may run unasked."""

import ast
import posixpath
from typing import TYPE_CHECKING

from decklog.core.python_source import parsed
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, Word

if TYPE_CHECKING:
    from decklog.guard.policy.engine import CommandCheck

_LONGEST = 40_000
_PATHS = {"pathlib.Path", "Path", "os.path.join", "os.path.expanduser"}
_OF_TUPLES = {"_asdict", "_fields", "_replace", "_make", "_field_defaults"}


def check_python(use: "CommandCheck", word: Word) -> None:
    """Judge Python code; what does not parse or is not known to be harmless is reported."""
    use.check("any-code", word)
    tree = parsed(word.text) if word.is_known and len(word.text) <= _LONGEST else None
    if tree is None:
        use.report(Event.RISKY_CODE)
    else:
        _Code(use, tree).check()


class _Code:
    """A piece of code; every import, call and attribute of it is judged."""

    def __init__(self, use: "CommandCheck", tree: ast.Module) -> None:
        self.use = use
        self.names = use.policy.names
        self.nodes = list(ast.walk(tree))
        self.roles: dict[str, str] = dict(pair.split("=") for pair in self.names["python_calls"])
        """The roles of what functions and methods are given, by their names."""
        self.modules: dict[str, str] = {}
        self.known: dict[str, str] = {}

    def check(self) -> None:
        """Judge the whole code."""
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        for node in self.nodes:
            # The names of known texts.
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name, text = node.targets[0].id, self._text(node.value)
                self.known[name] = text if text is not None and name not in self.known else UNKNOWN
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        called = {id(node.func) for node in calls}
        spared = {id(part) for node in calls if self._is_local_fetch(node) for part in ast.walk(node.func)}
        for node in self.nodes:
            if isinstance(node, ast.BinOp | ast.Call | ast.JoinedStr):
                self._check_built_path(node)
            if isinstance(node, ast.Call) and id(node.func) not in spared:
                self._call(node)
            elif isinstance(node, ast.Attribute) and id(node) not in spared:
                self._attribute(node, is_called=id(node) in called)
            elif isinstance(node, ast.Name) and node.id in self.names["risky_builtins"]:
                self._ask()

    def _ask(self) -> None:
        self.use.report(Event.RISKY_CODE)

    def _check_built_path(self, node: ast.expr) -> None:
        """Judge the parts of an expression as a path that is read, where together they name secrets or control files."""
        constants = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
        text = "~/" + "/".join(value.strip("/~") for value in constants if isinstance(value, str))
        if self.use.paths.classify(text, self.use.scope.cwd) in ("vault", "guard"):
            self.use.check("read", Word(text))

    def _is_local_fetch(self, node: ast.Call) -> bool:
        """Return whether a call only fetches an address of this machine."""
        is_plain = len(node.args) == 1 and all(keyword.arg == "timeout" for keyword in node.keywords)
        is_fetch = is_plain and self._dotted(node.func) in self.names["python_fetches"]
        return is_fetch and bool(self.use.policy.patterns("local_url").match(self._text(node.args[0]) or ""))

    def _text(self, node: ast.expr) -> str | None:
        """Return the text of a constant, of a path built from some, or of a name for one."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self.known.get(name)
            case ast.BinOp(op=ast.Div() | ast.Add() as sign):
                left, right = self._text(node.left), self._text(node.right)
                if left is None or (isinstance(sign, ast.Add) and right is None):
                    return None
                return posixpath.join(left, right or UNKNOWN) if isinstance(sign, ast.Div) else left + (right or "")
            case ast.JoinedStr(values=parts):
                texts = [self._text(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
                return "".join(UNKNOWN if text is None else text for text in texts)
            case ast.Call(func=function, args=[*parts]):
                name, texts = self._dotted(function), [self._text(part) for part in parts]
                if name.endswith("Path.home"):
                    return "~"
                if name in _PATHS and texts and texts[0] is not None:
                    return posixpath.join(texts[0], *(text or UNKNOWN for text in texts[1:]))
        return None

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Record the target of an imported name; report risky imports."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                root = alias.name.split(".")[0]
                self.modules[alias.asname or root] = alias.name if alias.asname else root
            else:
                full = f"{node.module or ''}.{alias.name}"
                self.modules[alias.asname or alias.name] = full
                if self._is_risky(full) and full not in self.names["python_fetches"]:
                    self._ask()

    def _is_risky(self, full: str) -> bool:
        """Return whether a dotted name belongs to a risky module and is not one of its safe parts."""
        is_risky = full.split(".")[0] in self.names["risky_modules"]
        return is_risky and not any(full == safe or full.startswith(safe + ".") for safe in self.names["safe_calls"])

    def _dotted(self, node: ast.expr) -> str:
        """Return the full dotted name of an expression, nothing if it is not a plain name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.modules.get(node.id, node.id), *reversed(parts)])

    def _is_imported(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.modules

    def _attribute(self, node: ast.Attribute, *, is_called: bool) -> None:
        """Judge an attribute: those that reach outside are reported."""
        full, name, is_imported = self._dotted(node), node.attr, self._is_imported(node)
        if is_imported and self._is_risky(full):
            if not (name.startswith("__") or name == "path" or (name.isupper() and not is_called)):
                self._ask()
            return
        # What a module has imported for itself, such as `random._os`.
        private = [part for part in full.split(".")[1:] if part.startswith("_") and not part.startswith("__")]
        is_outside = is_imported and not _OF_TUPLES.issuperset(private)
        is_class = name == "__class__" and isinstance(node.value, ast.Name)
        is_method = name.startswith("__") or full.split(".")[0] in ("", "builtins")
        if is_outside or (name in self.names["risky_methods"] and is_method and not is_class):
            self._ask()

    def _call(self, node: ast.Call) -> None:
        """Judge a call by what it starts, deletes, writes or opens."""
        function, full = node.func, self._dotted(node.func)
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        role = self.roles.get(full) or self.roles.get(name, "")
        if role == "start" or (not role and name.startswith(("exec", "spawn", "posix_spawn"))):
            self._start(node)
        elif role == "sql" and "sqlite3" in self.modules.values():
            text = self._text(node.args[0]) if node.args else None
            self.use.check("sql", Word(text)) if text is not None and UNKNOWN not in text else self._ask()
            return
        if role in ("read", "write", "delete"):
            self._path(role, node)
        elif name == "open":
            self._open(node)
        elif full in self.names["python_fetches"] or (
            # A method of an imported module that is not risky is none of those.
            name in self.names["risky_methods"] and not (self._is_imported(function) and not self._is_risky(full))
        ):
            self._ask()

    def _start(self, node: ast.Call) -> None:
        """Judge the command that a call starts, as a command line or as a list of arguments."""
        lists = [part.elts for part in node.args if isinstance(part, ast.List | ast.Tuple)]
        texts = [self._text(part) for part in node.args]
        if len(texts) > 1 and None not in texts:
            lists.append(node.args)
        for elements in filter(None, lists):
            self.use.run([Word(self._text(part) or UNKNOWN) for part in elements], keeps_stdin=False)
        if texts and texts[0] is not None:
            self.use.check("shell", Word(texts[0]))

    def _targets(self, node: ast.Call) -> list[str]:
        """Return the known path that a call is about: the object it is called on, or its first argument."""
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        if holder is not None and self._text(holder) is not None:
            places = [holder]
        else:
            # A method of an unknown object has an unknown path.
            is_module = holder is None or self._dotted(holder) in self.names["risky_modules"] or self._is_imported(holder)
            places = node.args[:1] if is_module else []
        texts = [self._text(place) for place in places]
        return [text for text in texts if text is not None and UNKNOWN not in text]

    def _path(self, role: str, node: ast.Call) -> None:
        """Judge a call that reads, writes or deletes a path."""
        targets = self._targets(node)
        text = self._text(node.args[0]) if node.args and role == "write" else None
        for path in targets:
            self.use.check(role, Word(path))
            if text is not None:
                self.use.write(path, Word(text), append=True)
        if role == "delete" or (role == "write" and not targets):
            self._ask()

    def _open(self, node: ast.Call) -> None:
        """Judge `open`: known paths by their place, unknown ones only if they are written."""
        modes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
        mode = modes[0].value if modes and isinstance(modes[0], ast.Constant) else "w" if modes else "r"
        writes = not set("wax+").isdisjoint(str(mode))
        targets, own = self._targets(node), set(map(id, ast.walk(node)))
        for path in targets:
            self.use.check("write" if writes else "read", Word(path))
            for part in self.nodes if writes else ():
                # Any other text of the code may be what is written.
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in own:
                    self.use.write(path, Word(part.value), append=True)
                    if " " in part.value and self.use.policy.file_roles(path):
                        self.use.check("later", Word(part.value))
        if writes and not targets:
            self._ask()
