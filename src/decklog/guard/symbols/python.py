"""Find the definitions and imports of a Python file by its syntax tree."""

import ast
import warnings
from collections.abc import Iterator

from decklog.core.errors import Invalid
from decklog.guard.symbols.definition import SymbolDefinition, SymbolKind

EXTENSIONS = (".py", ".pyi")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def definitions(data: bytes) -> Iterator[SymbolDefinition]:
    """Yield every class, function, method and import of a Python source, or refuse a broken one."""
    # A stack and not recursion: a source nested deeper than our own stack must not end the search.
    pending: list[tuple[ast.AST, tuple[str, ...], bool]] = [(_parsed(data), (), False)]
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


def _parsed(data: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Invalid(f"It is not valid Python: {error}", hint="Mend its syntax first.") from None


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
