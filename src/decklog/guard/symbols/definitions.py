"""Data types for definitions and imports in source files, and their extraction from Python syntax trees."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from decklog.core.errors import Invalid
from decklog.core.python_source import parsed


class SymbolKind(StrEnum):
    """Kind of a symbol."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    IMPORT = "import"


@dataclass(frozen=True)
class SymbolDefinition:
    """One definition or import. `names` also find it, in addition to its qualified name."""

    line_number: int
    kind: SymbolKind
    qualname: str
    names: tuple[str, ...]

    def answers_to(self, symbol: str) -> bool:
        """Return whether a searched name matches: `method`, `Class.method` or the full qualified name."""
        return symbol in self.names or self.qualname == symbol or self.qualname.endswith(f".{symbol}")


PYTHON_EXTENSIONS = (".py", ".pyi")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def python_definitions(data: bytes) -> Iterator[SymbolDefinition]:
    """Yield every class, function, method and import of a Python source; raise Invalid for a syntax error."""
    tree = parsed(data)
    if tree is None:
        raise Invalid("It is not valid Python", hint="Fix its syntax first.")
    # Use a stack instead of recursion: deeply nested source must not exceed the recursion limit.
    pending: list[tuple[ast.AST, tuple[str, ...], bool]] = [(tree, (), False)]
    while pending:
        node, scope, in_class = pending.pop()
        is_definition = isinstance(node, ast.ClassDef | Function)
        if isinstance(node, ast.ClassDef | Function):
            scope = (*scope, node.name)
            yield SymbolDefinition(node.lineno, _kind(node, in_class), ".".join(scope), (node.name,))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node)
        inside = isinstance(node, ast.ClassDef) if is_definition else in_class
        pending.extend((child, scope, inside) for child in ast.iter_child_nodes(node))


def _kind(node: ast.ClassDef | Function, in_class: bool) -> SymbolKind:
    if isinstance(node, ast.ClassDef):
        return SymbolKind.CLASS
    return SymbolKind.METHOD if in_class else SymbolKind.FUNCTION


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[SymbolDefinition]:
    module = "." * node.level + (node.module or "") if isinstance(node, ast.ImportFrom) else ""
    for alias in node.names:
        whole = f"{module}{'.' if module.strip('.') else ''}{alias.name}"
        names = (alias.name, alias.asname or alias.name.partition(".")[0], module)
        yield SymbolDefinition(node.lineno, SymbolKind.IMPORT, whole, tuple(filter(None, names)))
