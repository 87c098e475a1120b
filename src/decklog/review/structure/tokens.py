"""What a file does, apart from how it is written: its tokens without white space and notes, its syntax without words."""

import ast
import copy
import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from decklog.core.python_source import parsed
from decklog.review.rules.blanking import blanked
from decklog.review.rules.languages import suffix_of
from decklog.review.rules.rule import JVM, RECIPES, SCRIPTS, SETTINGS, SHELLS, C
from decklog.review.rules.source import Source

CODE = (
    ".py",
    ".pyi",
    *SCRIPTS,
    *JVM,
    *C,
    *SHELLS,
    ".go",
    ".rs",
    ".php",
    ".rb",
    ".cs",
    ".swift",
    ".dart",
    ".lua",
    ".ex",
    ".exs",
    ".sql",
    ".pl",
    ".r",
)
_TOKEN = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`[^`]*`|[A-Za-z_$][\w$]*|\d[\w.]*|=>|->|[-+*/%&|^=!<>?:]=|&&|\|\||\?\?|\S"
)
# What TypeScript says of types alone: nothing of it is left when the program runs.
_TYPED = (".ts", ".tsx", ".mts", ".cts")
_TYPES = re.compile(
    r"(?m)^[ \t]*(?:export\s+)?(?:declare\s+)?interface\s+\w[^{]*\{(?:[^{}]|\{[^{}]*\})*\}"
    r"|^[ \t]*(?:export\s+)?type\s+\w+[^=\n]*=[^;{]*(?:\{(?:[^{}]|\{[^{}]*\})*\}[^;{\n]*)*;|\breadonly\s+(?=\w)"
)
_LOGS = re.compile(r"(?i)^(?:self\.)?_?(?:log|logger|logging)\.\w+|^(?:warnings\.warn|print)$")


def is_code(path: str) -> bool:
    return suffix_of(path) in CODE


def is_run(path: str) -> bool:
    """Say whether a file decides what happens: code, settings and recipes."""
    name = path.rpartition("/")[2].lower()
    return is_code(path) or suffix_of(path) in SETTINGS or name.startswith(RECIPES)


class _Plain(ast.NodeTransformer):
    """Takes out of a syntax tree what no program does: documents, types, and what it is told to leave out."""

    def __init__(self, *, imports: bool, logs: bool, strings: bool) -> None:
        self.imports, self.logs, self.strings = imports, logs, strings

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None
        if self.logs and isinstance(node.value, ast.Call) and _LOGS.match(ast.unparse(node.value.func)):
            return None
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if self.strings and isinstance(node.value, str) else node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("") if self.strings else self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return node
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        return None if self.imports else node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if self.imports else node


def meaning(text: str, path: str, *, imports: bool = False, logs: bool = False, strings: bool = False) -> str:
    """Give what a file does; imports, words to a log and texts are left out where that is asked for."""
    suffix = suffix_of(path)
    if suffix in (".py", ".pyi"):
        tree = parsed(text.encode(errors="replace"))
        if tree is not None:
            return ast.dump(_Plain(imports=imports, logs=logs, strings=strings).visit(copy.deepcopy(tree)))
    looked = blanked(text, suffix or path.rpartition("/")[2].lower())
    source = looked.bare if strings else looked.code
    if suffix in _TYPED:
        source = _TYPES.sub("", source)
    if imports:
        source = re.sub(r"(?m)^\s*(?:import\b.*|use\s.*;|from\s.*|#include.*|using\s.*;|const\s.*require\(.*)$", "", source)
    if logs:
        source = re.sub(
            (
                r"(?m)^\s*(?:log(?:ger|ging)?\.\w+|console\.\w+|fmt\.Print\w*|(?:e?println"
                r"|info|debug|warn|error|trace)!)\(.*\)\s*;?\s*$"
            ),
            "",
            source,
        )
    return " ".join(_normal(_TOKEN.findall(source)))


def _normal(tokens: list[str]) -> Iterator[str]:
    """Leave out what a formatter adds or takes: semicolons, commas before a bracket, the kind of quotes, brackets of one name."""
    for place, token in enumerate(tokens):
        after = tokens[place + 1] if place + 1 < len(tokens) else ""
        if token == ";" or (token == "," and after in (")", "]", "}")):
            continue
        before = tokens[place - 1] if place else ""
        is_lone = (token == "(" and tokens[place + 2 : place + 4] == [")", "=>"]) or (
            token == ")" and after == "=>" and tokens[place - 2 : place - 1] == ["("]
        )
        if is_lone and before != "":
            continue
        yield '"' + token[1:-1] + '"' if token[:1] in ("'", '"') and len(token) > 1 else token


def parts(text: str, path: str) -> list[str]:
    """Give the tokens of a file that are no notes."""
    return _TOKEN.findall(blanked(text, suffix_of(path) or path.rpartition("/")[2].lower()).code)


# What differs in one line


@dataclass(frozen=True)
class Replaced:
    """A line that another one takes the place of, and the values that differ: before, after, and what they are of."""

    path: str
    line: int
    before: str
    after: str
    values: tuple[tuple[str, str, str], ...]


_VALUE = re.compile(r"\d+(?:\.\d+)*|[A-Za-z_][A-Za-z0-9_]*|[^\sA-Za-z0-9_]")
_NOT_NAMES = {
    "int",
    "str",
    "float",
    "bool",
    "number",
    "string",
    "usize",
    "let",
    "const",
    "var",
    "def",
    "final",
    "static",
    "private",
    "public",
    "default",
    "long",
    "type",
    "time",
    "Second",
    "pub",
    "u64",
    "u32",
    "i64",
    "env",
    "get",
    "none",
    "None",
    "add_argument",
}


def replaced(source: Source) -> Iterator[Replaced]:
    """Give the lines that were replaced one by one and differ in nothing but values."""
    gone: list[str] = []
    new: list[tuple[int, str]] = []
    for line in (*source.lines, None):
        if line is not None and line.sign == "-":
            if new:
                yield from _paired(source.path, gone, new)
                gone, new = [], []
            gone.append(line.text)
        elif line is not None and (not new or new[-1][0] == line.number - 1):
            new.append((line.number, line.text))
        else:
            yield from _paired(source.path, gone, new)
            gone, new = [], [(line.number, line.text)] if line is not None else []


def _paired(path: str, gone: list[str], new: list[tuple[int, str]]) -> Iterator[Replaced]:
    left = list(new)
    for text in gone:
        near = max(left, key=lambda one: difflib.SequenceMatcher(None, text, one[1]).ratio(), default=None)
        values = _values(text, near[1]) if near is not None else None
        if near is not None and values:
            left.remove(near)
            yield Replaced(path, near[0], text, near[1], values)


def _values(before: str, after: str) -> tuple[tuple[str, str, str], ...] | None:
    first, second = _VALUE.findall(before), _VALUE.findall(after)
    if len(first) != len(second):
        return None
    found = []
    for place, (one, other) in enumerate(zip(first, second, strict=True)):
        if one == other:
            continue
        is_number = one[0].isdigit() and other[0].isdigit()
        is_word = one[0].isalpha() and other[0].isalpha() and before.count('"') + before.count("'") >= 2
        if not (is_number or is_word):
            return None
        names = [word for word in first[:place] if word[0].isalpha() and word not in _NOT_NAMES]
        found.append((one, other, " ".join(names[-3:][::-1])))
    return tuple(found) if len(found) <= 4 else None
