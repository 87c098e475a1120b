"""Inline Python, judged by its syntax tree: computing, printing and reading may run unasked."""

import ast
import posixpath
from typing import TYPE_CHECKING

from decklog.core.python_source import parsed
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, Word

if TYPE_CHECKING:
    from decklog.guard.policy.engine import Use

_LONGEST = 40_000
_PATHS = {"pathlib.Path", "Path", "os.path.join", "os.path.expanduser"}
_OF_TUPLES = {"_asdict", "_fields", "_replace", "_make", "_field_defaults"}


def check_python(use: "Use", word: Word) -> None:
    """Judge Python code; what does not parse or is not known to be harmless is reported."""
    use.check("any-code", word)
    tree = None if not word.is_known or len(word.text) > _LONGEST else parsed(word.text)
    if tree is None:
        use.report(Event.RISKY_CODE)
    else:
        _Visitor(use).check(tree)


class _Visitor:
    """Look at every import, call and attribute of a piece of code."""

    def __init__(self, use: "Use") -> None:
        self.use = use
        self.names = use.policy.names
        self.roles: dict[str, str] = dict(pair.split("=") for pair in self.names["python_calls"])
        """The roles of what functions and methods are given, by their names."""
        self.modules: dict[str, str] = {}
        self.known: dict[str, str] = {}
        self.files: dict[str, ast.expr] = {}
        self.texts: list[str] = []
        self.spared: set[int] = set()

    def check(self, tree: ast.Module) -> None:
        """Judge the whole code."""
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node)
        self.texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        for node in nodes:
            self._note_names(node)
        for node in nodes:
            if isinstance(node, ast.BinOp | ast.Call | ast.JoinedStr):
                self._check_built_path(node)
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        for node in calls:
            self._allow_local_fetch(node)
        called = {id(node.func) for node in calls}
        for node in nodes:
            if isinstance(node, ast.Call) and id(node.func) not in self.spared:
                self._call(node)
            elif isinstance(node, ast.Attribute) and id(node) not in self.spared:
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

    def _allow_local_fetch(self, node: ast.Call) -> None:
        """Spare a call that only fetches an address of this machine."""
        is_plain = len(node.args) == 1 and all(keyword.arg == "timeout" for keyword in node.keywords)
        is_fetch = is_plain and self._dotted(node.func) in self.names["python_fetches"]
        if is_fetch and self.use.policy.patterns("local_url").match(self._text(node.args[0]) or ""):
            self.spared.update(id(part) for part in ast.walk(node.func))

    def _note_names(self, node: ast.AST) -> None:
        """Note the names of known texts and of open files."""
        if isinstance(node, ast.withitem) and isinstance(node.optional_vars, ast.Name):
            self.files[node.optional_vars.id] = node.context_expr
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name, text = node.targets[0].id, self._text(node.value)
            self.known[name] = text if text is not None and name not in self.known else UNKNOWN

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
                name, texts = self._dotted(function) or "", [self._text(part) for part in parts]
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

    def _dotted(self, node: ast.expr) -> str | None:
        """Return the full dotted name of an expression, None if it is not a plain name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([self.modules.get(node.id, node.id), *reversed(parts)])

    def _is_imported(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.modules

    def _attribute(self, node: ast.Attribute, *, is_called: bool) -> None:
        """Judge an attribute: those that reach outside are reported."""
        full = self._dotted(node)
        name = node.attr
        if full and self._is_imported(node):
            if self._is_risky(full):
                is_constant = name.isupper() and not is_called
                if not name.startswith("__") and not is_constant and name != "path":
                    self._ask()
                return
            # What a module has imported for itself, such as `random._os`.
            private = [part for part in full.split(".")[1:] if part.startswith("_") and not part.startswith("__")]
            if any(part not in _OF_TUPLES for part in private):
                self._ask()
                return
        root = full.split(".")[0] if full else ""
        is_class = name == "__class__" and isinstance(node.value, ast.Name)
        if name in self.names["risky_methods"] and (name.startswith("__") or root in ("", "builtins")) and not is_class:
            self._ask()

    def _call(self, node: ast.Call) -> None:
        """Judge a call by what it starts, deletes, writes or opens."""
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        full = self._dotted(function) or ""
        role = (
            self.roles.get(full) or self.roles.get(name) or ("start" if name.startswith(("exec", "spawn", "posix_spawn")) else "")
        )
        if role == "start":
            self._start(node)
        elif role == "sql" and "sqlite3" in self.modules.values():
            text = self._text(node.args[0]) if node.args else None
            self.use.check("sql", Word(text)) if text is not None and UNKNOWN not in text else self._ask()
            return
        if role in ("read", "write", "delete"):
            self._path(role, node)
        elif name == "write":
            self._keep(self._opened(function), node)
        elif name == "open":
            self._open(node)
        elif full in self.names["python_fetches"] or (
            # A method of an imported module that is not risky is none of those.
            name in self.names["risky_methods"] and not (full and self._is_imported(function) and not self._is_risky(full))
        ):
            self._ask()

    def _start(self, node: ast.Call) -> None:
        """Judge the command that a call starts, as a command line or as a list of arguments."""
        lists = [part.elts for part in node.args if isinstance(part, ast.List | ast.Tuple)]
        texts = [self._text(part) for part in node.args]
        if len(texts) > 1 and None not in texts:
            lists.append(node.args)
        for elements in lists:
            argv = [Word(self._text(part) or UNKNOWN) for part in elements]
            if argv:
                self.use.run(argv, keeps_stdin=False)
        if texts and texts[0] is not None:
            self.use.check("shell", Word(texts[0]))

    def _targets(self, node: ast.Call) -> list[str]:
        """Return the known path that a call is about: the object it is called on, or its first argument."""
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        if holder is not None and self._text(holder) is not None:
            places = [holder]
        else:
            # A method of an unknown object has an unknown path.
            is_module = holder is None or (self._dotted(holder) or "") in self.names["risky_modules"] or self._is_imported(holder)
            places = node.args[:1] if is_module else []
        texts = [self._text(place) for place in places]
        return [text for text in texts if text is not None and UNKNOWN not in text]

    def _path(self, role: str, node: ast.Call) -> None:
        targets = self._targets(node)
        for text in targets:
            self.use.check(role, Word(text))
        if role == "delete" or (role == "write" and not targets):
            self._ask()
        if role == "write":
            self._keep(targets, node)

    def _opened(self, function: ast.expr) -> list[str]:
        """Return the file that a method writes to, opened right there or under a name."""
        holder = function.value if isinstance(function, ast.Attribute) else None
        holder = self.files.get(holder.id) if isinstance(holder, ast.Name) else holder
        return self._targets(holder) if isinstance(holder, ast.Call) and getattr(holder.func, "id", "") == "open" else []

    def _keep(self, places: list[str], node: ast.Call) -> None:
        """Remember what is written to a file."""
        text = self._text(node.args[0]) if node.args else None
        for place in places if text is not None else ():
            self.use.write(place, Word(text or ""), append=True)

    def _open(self, node: ast.Call) -> None:
        """Judge `open`: known paths by their place, unknown ones only if they are written."""
        modes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
        mode = modes[0].value if modes and isinstance(modes[0], ast.Constant) else "w" if modes else "r"
        writes = bool(set(str(mode)) & set("wax+"))
        targets = self._targets(node)
        for path in targets[:1]:
            self.use.check("write" if writes else "read", Word(path))
            if writes and self.use.policy.file_roles(path):
                for text in {text for text in self.texts if " " in text}:
                    self.use.write(path, Word(text))
                    self.use.check("later", Word(text))
        if writes and not targets:
            self._ask()
