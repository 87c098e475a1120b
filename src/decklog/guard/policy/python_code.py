"""Check of inline Python by its syntax tree: code that only computes, prints and reads needs no approval."""

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
_TUPLE_METHODS = {"_asdict", "_fields", "_replace", "_make", "_field_defaults"}


def check_python(command: "CommandCheck", word: Word) -> None:
    """Judge Python code; report it unless it parses and is known to be harmless."""
    command.check("any-code", word)
    tree = parsed(word.text) if word.is_known and len(word.text) <= _LONGEST else None
    if tree is None:
        command.report(Event.RISKY_CODE)
    else:
        _PythonCheck(command, tree).check()


class _PythonCheck:
    """Check of all imports, calls and attributes in a piece of code."""

    def __init__(self, command: "CommandCheck", tree: ast.Module) -> None:
        self.command = command
        self.names = command.policy.names
        self.nodes = list(ast.walk(tree))
        self.roles: dict[str, str] = dict(pair.split("=") for pair in self.names["python_calls"])
        """The roles of the arguments of functions and methods, by name."""
        self.modules: dict[str, str] = {}
        self.known: dict[str, str] = {}

    def check(self) -> None:
        """Judge the whole code."""
        for node in self.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._record_import(node)
        for node in self.nodes:
            # The names of known texts.
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name, text = node.targets[0].id, self._known_text(node.value)
                self.known[name] = text if text is not None and name not in self.known else UNKNOWN
        calls = [node for node in self.nodes if isinstance(node, ast.Call)]
        called = {id(node.func) for node in calls}
        exempt = {id(part) for node in calls if self._is_local_fetch(node) for part in ast.walk(node.func)}
        for node in self.nodes:
            if isinstance(node, ast.BinOp | ast.Call | ast.JoinedStr):
                self._check_built_path(node)
            if isinstance(node, ast.Call) and id(node.func) not in exempt:
                self._check_call(node)
            elif isinstance(node, ast.Attribute) and id(node) not in exempt:
                self._check_attribute(node, is_called=id(node) in called)
            elif isinstance(node, ast.Name) and node.id in self.names["risky_builtins"]:
                self._report_risky()

    def _report_risky(self) -> None:
        self.command.report(Event.RISKY_CODE)

    def _check_built_path(self, node: ast.expr) -> None:
        """Judge the constants of an expression as one path, if together they name a secret or a control file."""
        constants = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant))
        text = "~/" + "/".join(value.strip("/~") for value in constants if isinstance(value, str))
        if self.command.paths.classify(text, self.command.scope.cwd) in ("vault", "guard"):
            self.command.check("read", Word(text))

    def _is_local_fetch(self, node: ast.Call) -> bool:
        """Return whether a call only fetches an address of this machine."""
        is_plain = len(node.args) == 1 and all(keyword.arg == "timeout" for keyword in node.keywords)
        is_fetch = is_plain and self._dotted_name(node.func) in self.names["python_fetches"]
        return is_fetch and bool(self.command.policy.patterns("local_url").match(self._known_text(node.args[0]) or ""))

    def _known_text(self, node: ast.expr) -> str | None:
        """Return the text of an expression if it is known: a constant, a built path, or a variable with such a value."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name):
                return self.known.get(name)
            case ast.BinOp(op=ast.Div() | ast.Add() as sign):
                left, right = self._known_text(node.left), self._known_text(node.right)
                if left is None or (isinstance(sign, ast.Add) and right is None):
                    return None
                return posixpath.join(left, right or UNKNOWN) if isinstance(sign, ast.Div) else left + (right or "")
            case ast.JoinedStr(values=parts):
                texts = [self._known_text(part.value if isinstance(part, ast.FormattedValue) else part) for part in parts]
                return "".join(UNKNOWN if text is None else text for text in texts)
            case ast.Call(func=function, args=[*parts]):
                name, texts = self._dotted_name(function), [self._known_text(part) for part in parts]
                if name.endswith("Path.home"):
                    return "~"
                if name in _PATHS and texts and texts[0] is not None:
                    return posixpath.join(texts[0], *(text or UNKNOWN for text in texts[1:]))
        return None

    def _record_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Record the target of an imported name; report risky imports."""
        for alias in node.names:
            if isinstance(node, ast.Import):
                root = alias.name.split(".")[0]
                self.modules[alias.asname or root] = alias.name if alias.asname else root
            else:
                full = f"{node.module or ''}.{alias.name}"
                self.modules[alias.asname or alias.name] = full
                if self._is_risky(full) and full not in self.names["python_fetches"]:
                    self._report_risky()

    def _is_risky(self, full: str) -> bool:
        """Return whether a dotted name belongs to a risky module and is not one of its safe parts."""
        is_risky = full.split(".")[0] in self.names["risky_modules"]
        return is_risky and not any(full == safe or full.startswith(safe + ".") for safe in self.names["safe_calls"])

    def _dotted_name(self, node: ast.expr) -> str:
        """Return the full dotted name of an expression; an empty text if it is not a plain name."""
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

    def _check_attribute(self, node: ast.Attribute, *, is_called: bool) -> None:
        """Judge an attribute; report one that reaches outside of the code."""
        full, name, is_imported = self._dotted_name(node), node.attr, self._is_imported(node)
        if is_imported and self._is_risky(full):
            if not (name.startswith("__") or name == "path" or (name.isupper() and not is_called)):
                self._report_risky()
            return
        # Private names of a module, such as its imports (`random._os`).
        private = [part for part in full.split(".")[1:] if part.startswith("_") and not part.startswith("__")]
        is_outside = is_imported and not _TUPLE_METHODS.issuperset(private)
        is_class = name == "__class__" and isinstance(node.value, ast.Name)
        is_method = name.startswith("__") or full.split(".")[0] in ("", "builtins")
        if is_outside or (name in self.names["risky_methods"] and is_method and not is_class):
            self._report_risky()

    def _check_call(self, node: ast.Call) -> None:
        """Judge a call by what it starts, deletes, writes or opens."""
        function, full = node.func, self._dotted_name(node.func)
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        role = self.roles.get(full) or self.roles.get(name, "")
        if role == "start" or (not role and name.startswith(("exec", "spawn", "posix_spawn"))):
            self._check_started_command(node)
        elif role == "sql" and "sqlite3" in self.modules.values():
            text = self._known_text(node.args[0]) if node.args else None
            self.command.check("sql", Word(text)) if text is not None and UNKNOWN not in text else self._report_risky()
            return
        if role in ("read", "write", "delete"):
            self._check_path(role, node)
        elif name == "open":
            self._check_open(node)
        elif full in self.names["python_fetches"] or (
            # Methods of an imported module that is not risky are exempt.
            name in self.names["risky_methods"] and not (self._is_imported(function) and not self._is_risky(full))
        ):
            self._report_risky()

    def _check_started_command(self, node: ast.Call) -> None:
        """Judge the command that a call starts, as a command line or as a list of arguments."""
        lists = [part.elts for part in node.args if isinstance(part, ast.List | ast.Tuple)]
        texts = [self._known_text(part) for part in node.args]
        if len(texts) > 1 and None not in texts:
            lists.append(node.args)
        for elements in filter(None, lists):
            self.command.run([Word(self._known_text(part) or UNKNOWN) for part in elements], keeps_stdin=False)
        if texts and texts[0] is not None:
            self.command.check("shell", Word(texts[0]))

    def _known_paths(self, node: ast.Call) -> list[str]:
        """Return the path that a call uses, if it is known: the object of the method, or the first argument."""
        holder = node.func.value if isinstance(node.func, ast.Attribute) else None
        if holder is not None and self._known_text(holder) is not None:
            places = [holder]
        else:
            # A method of an unknown object has an unknown path.
            is_module = holder is None or self._dotted_name(holder) in self.names["risky_modules"] or self._is_imported(holder)
            places = node.args[:1] if is_module else []
        texts = [self._known_text(place) for place in places]
        return [text for text in texts if text is not None and UNKNOWN not in text]

    def _check_path(self, role: str, node: ast.Call) -> None:
        """Judge a call that reads, writes or deletes a path."""
        targets = self._known_paths(node)
        text = self._known_text(node.args[0]) if node.args and role == "write" else None
        for path in targets:
            self.command.check(role, Word(path))
            if text is not None:
                self.command.write(path, Word(text), append=True)
        if role == "delete" or (role == "write" and not targets):
            self._report_risky()

    def _check_open(self, node: ast.Call) -> None:
        """Judge `open`: known paths by their location, unknown paths only for writing."""
        modes = [*node.args[1:2], *(keyword.value for keyword in node.keywords if keyword.arg == "mode")]
        mode = modes[0].value if modes and isinstance(modes[0], ast.Constant) else "w" if modes else "r"
        writes = not set("wax+").isdisjoint(str(mode))
        targets, nodes_of_call = self._known_paths(node), set(map(id, ast.walk(node)))
        for path in targets:
            self.command.check("write" if writes else "read", Word(path))
            for part in self.nodes if writes else ():
                # Any other text in the code may be the written content.
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in nodes_of_call:
                    self.command.write(path, Word(part.value), append=True)
                    if " " in part.value and self.command.policy.file_roles(path):
                        self.command.check("later", Word(part.value))
        if writes and not targets:
            self._report_risky()
