"""Functions of a file and what they take: by Python's syntax, by the words of declarations in other languages."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from decklog.core.python_source import parsed
from decklog.review.rules.blanking import blanked
from decklog.review.rules.rule import SCRIPTS, C

_MANY = 10_000
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Parameter:
    """One parameter. `by` says how it may be given: in its place, by its name, or by either."""

    name: str
    is_needed: bool = True
    is_many: bool = False
    by: str = "either"


@dataclass(frozen=True)
class Declared:
    """A function, or a class as it is called. `results` is how many values come back, where that is declared."""

    name: str
    owner: str
    parameters: tuple[Parameter, ...]
    line: int
    last: int
    doc: str = ""
    body: str = ""
    results: int | None = None
    is_async: bool = False
    is_typed: bool = False
    returns: str = ""

    @property
    def least(self) -> int:
        return sum(one.is_needed and not one.is_many and one.by != "name" for one in self.parameters)

    @property
    def most(self) -> int:
        if any(one.is_many and one.by == "place" for one in self.parameters):
            return _MANY
        return sum(one.by != "name" and not one.is_many for one in self.parameters)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(one.name for one in self.parameters if one.by != "place")

    @property
    def takes_any_name(self) -> bool:
        return any(one.is_many and one.by == "name" for one in self.parameters)


def declared(text: str, suffix: str) -> list[Declared]:
    """Give the functions that a file declares."""
    if suffix in (".py", ".pyi"):
        tree = parsed(text.encode(errors="replace"))
        return list(_of_python(tree, text)) if tree is not None else []
    return list(_of_text(text, suffix))


# Python


def _of_python(tree: ast.Module, text: str) -> Iterator[Declared]:
    rows = text.split("\n")
    for node in tree.body:
        if isinstance(node, Function):
            yield _function(node, "", rows)
        elif isinstance(node, ast.ClassDef):
            yield from _class(node, rows)


def _class(node: ast.ClassDef, rows: list[str]) -> Iterator[Declared]:
    methods = [one for one in node.body if isinstance(one, Function)]
    for one in methods:
        yield _function(one, node.name, rows)
    if any(one.name == "__init__" for one in methods):
        first = next(_function(one, node.name, rows) for one in methods if one.name == "__init__")
        yield Declared(node.name, "", first.parameters, node.lineno, node.end_lineno or node.lineno)
    elif _is_dataclass(node):
        fields = tuple(_field(one) for one in node.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name))
        named = "kw_only" in ast.unparse(node.decorator_list[0]) if node.decorator_list else False
        given = tuple(Parameter(one.name, one.is_needed, by="name") if named else one for one in fields)
        yield Declared(node.name, "", given, node.lineno, node.end_lineno or node.lineno)


def _is_dataclass(node: ast.ClassDef) -> bool:
    if node.bases:
        return [ast.unparse(base) for base in node.bases] in (["NamedTuple"], ["typing.NamedTuple"])
    return any("dataclass" in ast.unparse(one) for one in node.decorator_list)


def _field(one: ast.AnnAssign) -> Parameter:
    is_own = one.value is None or (isinstance(one.value, ast.Call) and "default" not in ast.unparse(one.value))
    return Parameter(one.target.id if isinstance(one.target, ast.Name) else "", is_own)


def _function(node: Function, owner: str, rows: list[str]) -> Declared:
    given = node.args
    placed = [*given.posonlyargs, *given.args]
    needed = len(placed) - len(given.defaults)
    found = [
        Parameter(one.arg, place < needed, by="place" if place < len(given.posonlyargs) else "either")
        for place, one in enumerate(placed)
    ]
    if owner and found and not any(ast.unparse(one) == "staticmethod" for one in node.decorator_list):
        found = found[1:]
    if given.vararg is not None:
        found.append(Parameter(given.vararg.arg, False, True, "place"))
    for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        found.append(Parameter(one.arg, default is None, by="name"))
    if given.kwarg is not None:
        found.append(Parameter(given.kwarg.arg, False, True, "name"))
    last = node.end_lineno or node.lineno
    # What a decorator makes of it is not known here; only those that change no parameter are looked through.
    is_plain = all(
        re.match(r"(?:staticmethod|classmethod|abstractmethod|\w*cache|override|final)\b", ast.unparse(one))
        for one in node.decorator_list
    )
    return Declared(
        node.name,
        owner,
        tuple(found) if is_plain else (Parameter("", False, True, "place"), Parameter("", False, True, "name")),
        node.lineno,
        last,
        doc=ast.get_docstring(node) or "",
        body="\n".join(rows[node.lineno - 1 : last]),
        is_async=isinstance(node, ast.AsyncFunctionDef),
    )


# Other languages

_GENERIC = r"(?:<[^<>()]*(?:<[^<>()]*>)?[^<>()]*>|\[[^\]()]*\])?"
_TYPED = (
    r"(?m)^[ \t]*(?:@\w+\s+)*(?:(?:public|private|protected|internal|static|final"
    r"|abstract|virtual|override|async|synchronized|default|inline|const|extern"
    r"|native)\s+)*(?!(?:return|new|else|throw|case|await|yield|package|import"
    r"|using|goto)\b)[\w.<>\[\],?&*: ]*[\w>\]?&*]\s+[&*]*(?P<name>\w+)\s*\("
)
_FORMS: dict[tuple[str, ...], str] = {
    SCRIPTS: (
        rf"(?m)\bfunction\s*\*?\s*(?P<name>[\w$]+)\s*{_GENERIC}\("
        r"|(?:\b(?:const|let|var)\s+|\b(?:module\.)?exports\.)(?P<arrow>[\w$]+)\s*(?::[^=\n]+)?=\s*(?:async\s*)?(?:function\b[^(\n]*)?"
        + _GENERIC
        + r"\("
        + (
            r"|^[ \t]+(?:(?:public|private|protected|static|async|readonly|override|get"
            r"|set)\s+)*(?P<method>(?!(?:if|for|while|switch|catch|return|function"
            r"|super)\b)[\w$]+)\s*"
        )
        + _GENERIC
        + r"\((?=[^()]*\)\s*(?::[^{};=\n]+)?\{)"
    ),
    (".go",): rf"\bfunc\s+(?:\([^)]*\)\s*)?(?P<name>\w+)\s*{_GENERIC}\(",
    (".rs",): rf"\bfn\s+(?P<name>\w+)\s*{_GENERIC}\(",
    (".kt", ".kts"): rf"\bfun\s+{_GENERIC}\s*(?:[\w.<>?]+\.)?(?P<name>\w+)\s*\(",
    (".scala", ".groovy"): r"\bdef\s+(?P<name>\w+)\s*\(",
    (".swift",): rf"\bfunc\s+(?P<name>\w+)\s*{_GENERIC}\(",
    (".php",): r"\bfunction\s+&?(?P<name>\w+)\s*\(",
    (".rb",): r"(?m)^[ \t]*def\s+(?:self\.)?(?P<name>\w+[?!=]?)[ \t]*\(?",
    (".java", ".cs", ".dart", *C): _TYPED,
}
_PATTERNS = {suffix: re.compile(form) for suffixes, form in _FORMS.items() for suffix in suffixes}
_OWNER = re.compile(
    r"\b(?:class|interface|struct|trait|impl(?:\s*<[^>]*>)?(?:\s+[\w:<>]+\s+for)?"
    r"|object|enum|module|protocol|record)\s+(?P<name>\w+)"
)
_RECEIVER = re.compile(r"func\s+\(\s*\w*\s*\*?\s*(?P<name>\w+)")
_WORDS = {"if", "for", "while", "switch", "catch", "return", "sizeof", "function", "match", "when", "using", "lock", "assert"}
_OPEN, _CLOSE = "([{", ")]}"


def closing(text: str, start: int) -> int:
    """Give the place of the bracket that closes the one at `start`; the end of the text where there is none."""
    depth = 0
    for place in range(start, min(len(text), start + 40_000)):
        if text[place] in _OPEN:
            depth += 1
        elif text[place] in _CLOSE:
            depth -= 1
            if depth == 0:
                return place
    return len(text)


def split(text: str) -> list[str]:
    """Cut a text at the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        is_arrow = sign == ">" and text[place - 1 : place] in ("=", "-")
        if sign in _OPEN or (sign == "<" and re.match(r"<[\w&:?\s,\[\]<>*.]*>", text[place:])):
            depth += 1
        elif (sign in _CLOSE or sign == ">") and not is_arrow:
            depth = max(0, depth - 1)
        elif sign == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _of_text(text: str, suffix: str) -> Iterator[Declared]:
    pattern = _PATTERNS.get(suffix)
    if pattern is None:
        return
    looked = blanked(text, suffix)
    bare, rows = looked.bare, text.split("\n")
    owners = [(one.start(), one["name"]) for one in _OWNER.finditer(bare)]
    for match in pattern.finditer(bare):
        groups = match.groupdict()
        name = groups["name"] or groups.get("arrow") or groups.get("method") or ""
        if name in _WORDS:
            continue
        opened = match.end() - 1
        if suffix == ".rb" and bare[opened : opened + 1] != "(":
            end = bare.find("\n", opened)
            inner, after = bare[match.end() : end], end
        else:
            after = closing(bare, opened) + 1
            inner = bare[opened + 1 : after - 1]
        found = _one(name, inner, bare, text, after, match.start(), suffix, rows)
        if found is not None:
            receiver = _RECEIVER.match(bare, match.start()) if suffix == ".go" else None
            owner = receiver["name"] if receiver else _enclosing(bare, owners, match.start())
            # What makes an object of a class is called by the name of the class.
            is_maker = name == "constructor" and owner
            yield replace(
                found, name=owner if is_maker else name, owner="" if is_maker else owner, is_typed=suffix not in SCRIPTS
            )


def _enclosing(bare: str, owners: list[tuple[int, str]], place: int) -> str:
    """Name the class or the like that a place stands in."""
    for start, name in reversed(owners):
        opened = bare.find("{", start)
        if start < place and -1 < opened < place and closing(bare, opened) >= place:
            return name
    return ""


_AFTER = {
    ".go": r"(?P<results>[^{\n]*)\{",
    ".rs": r"[^{;]*[{;]",
    ".kt": r"[^{=\n]*[{=\n]",
    ".kts": r"[^{=\n]*[{=\n]",
    ".rb": r"",
    ".scala": r"[^\n]*",
    ".groovy": r"[^\n]*",
}


def _one(name: str, inner: str, bare: str, text: str, after: int, start: int, suffix: str, rows: list[str]) -> Declared | None:
    """Read one declaration; what is followed by nothing that a declaration has is a call."""
    form = _AFTER.get(
        suffix,
        r"\s*(?:throws\s+[\w., ]+|const|noexcept|override|:[^{};=]+|->[^{};]+|async\*?)*\s*(?:\{|=>|;)"
        if suffix != ".js"
        else r"\s*(?:\{|=>)",
    )
    rest = re.compile(form).match(bare, after)
    if rest is None or (rest[0].endswith(";") and suffix in (*SCRIPTS, ".dart", ".php")):
        return None
    line = bare.count("\n", 0, start + len(bare[start:]) - len(bare[start:].lstrip())) + 1
    end = _end(bare, rest.end() - 1, after)
    body = text[start:end]
    found = tuple(_parameter(part, suffix, body) for part in split(inner))
    given = tuple(one for one in found if one is not None)
    results = _results(rest["results"]) if suffix == ".go" else None
    last = bare.count("\n", 0, max(start, end - 1)) + 1
    is_async = "async" in bare[max(0, start - 20) : after]
    returns = re.sub(r"^\s*(?:->|:)?\s*|\s*(?:\{|=>|;)$", "", rest[0]).strip()
    return Declared(name, "", given, line, last, _comment(rows, line), body, results, is_async, returns=returns)


def _end(bare: str, place: int, after: int) -> int:
    if place < len(bare) and bare[place] == "{":
        return closing(bare, place) + 1
    if bare.startswith("=>", place - 1) and (opened := re.compile(r"\s*[({]").match(bare, place + 1)) is not None:
        return closing(bare, opened.end() - 1) + 1
    # Without braces it ends with its line, or in Ruby with a line that says so.
    ended = re.compile(r"(?m)^\s*end\b").search(bare, after) if bare[place : place + 1] not in ("{", ";") else None
    stop = bare.find("\n", after)
    return (
        ended.end() if ended is not None and "def " in bare[max(0, after - 200) : after] else (stop if stop >= 0 else len(bare))
    )


def _results(text: str) -> int:
    plain = text.strip()
    return len(split(plain[1:-1])) if plain.startswith("(") else int(bool(plain))


def _comment(rows: list[str], line: int) -> str:
    """Give the comment right above a line."""
    found: list[str] = []
    for row in reversed(rows[: line - 1]):
        plain = row.strip()
        if plain.startswith("@") and not found:
            continue
        if not plain.startswith(("//", "/*", "*", "#", "--")):
            break
        found.append(plain.lstrip("/*#- ").removesuffix("*/"))
    return "\n".join(reversed(found))


def _parameter(part: str, suffix: str, body: str) -> Parameter | None:
    if suffix == ".rs" and re.fullmatch(r"&?\s*(?:'\w+\s+)?(?:mut\s+)?self(?:\s*:.*)?", part):
        return None
    if part in ("void", "self"):
        return None
    is_many = (
        "..." in part
        or (part.startswith("*") and suffix == ".rb")
        or "vararg " in part
        or re.search(r"\bparams\b", part) is not None
    )
    if part.startswith("&") and suffix == ".rb":
        return Parameter(part[1:], False)
    head = part.partition("=")[0] if "=>" not in part.partition("=")[0] + "=" else part
    has_default = re.search(r"(?<![=<>!])=(?![=>])", part) is not None
    if suffix in SCRIPTS:
        name = (re.match(r"(?:(?:public|private|readonly|protected)\s+)*(?:\.\.\.)?([\w$]+)", part) or [part, part])[1]
        is_optional = has_default or re.match(r"[\w$\s]+\?", head) is not None or _is_looked_at(name, body)
        return Parameter(name, not is_optional, is_many, "place")
    if suffix == ".rb" and re.match(r"\w+:", part):
        return Parameter(part.partition(":")[0], part.endswith(":"), by="name")
    words = re.findall(r"\w+", head.partition(":")[0] if suffix in (".kt", ".kts", ".swift", ".scala", ".rs") else head)
    name = words[0] if suffix == ".go" and words else words[-1] if words else part
    return Parameter(name, not has_default and not is_many, is_many, "place")


def _is_looked_at(name: str, body: str) -> bool:
    """Say whether a function asks if it was given something at all."""
    word = re.escape(name)
    return (
        re.search(
            rf"(?<![\w.$])(?:!?{word}\s*(?:\?\?|\|\||\?\.|&&|\?[^:.])|typeof\s+{word}|{word}\s*[!=]==?\s*(?:undefined|null)|if\s*\(\s*!?{word}\s*\))",
            body,
        )
        is not None
    )
