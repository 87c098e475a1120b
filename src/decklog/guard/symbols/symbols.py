"""Find functions, methods, classes and imports by parsing source files."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from decklog.core.errors import DecklogError, Invalid, NotFound
from decklog.guard.files.root import Root
from decklog.guard.search.search import SkippedPath, walk
from decklog.guard.symbols import tree_sitter
from decklog.guard.symbols.definitions import PYTHON_EXTENSIONS, SymbolDefinition, SymbolKind, python_definitions


@dataclass(frozen=True)
class Symbol:
    """Location of a symbol. `qualname` includes its parents: `Class.method`, `package.module.name`."""

    path: str
    line_number: int
    kind: str
    qualname: str
    language: str


@dataclass(frozen=True)
class Symbols:
    """The symbols found, by path and line, and the files that could not be searched."""

    symbols: tuple[Symbol, ...]
    skipped: tuple[SkippedPath, ...]


def find_symbol(root: Root, symbol: str, kind: str | None = None, path: str = ".") -> Symbols:
    """Find the definitions and imports of a name: `save`, or `Store.save` for one class's.

    `kind` is `function`, `method`, `class` or `import`. Python is read by its own parser; JavaScript, TypeScript, Go, Rust,
    Java, C, C++ and Ruby by tree-sitter. Files whose grammar is not installed are named in `skipped`.
    """
    search = _SymbolSearch(root, _checked(symbol), _kind(kind))
    walked = walk(root, path)
    search.skipped += walked.skipped
    for file in walked.files:
        search.look_into(file)
    return search.result()


def _checked(symbol: str) -> str:
    if not symbol.strip():
        raise Invalid("The symbol is empty", hint="Give a name, such as save or Store.save.")
    return symbol.strip().replace("::", ".")


def _kind(kind: str | None) -> SymbolKind | None:
    try:
        return SymbolKind(kind) if kind is not None else None
    except ValueError:
        hint = "Use function, method, class or import."
        raise Invalid(f"{kind!r} is not a kind of symbol", hint=hint, kind=kind) from None


@dataclass
class _SymbolSearch:
    root: Root
    symbol: str
    kind: SymbolKind | None
    found: list[Symbol] = field(default_factory=list)
    skipped: list[SkippedPath] = field(default_factory=list)
    unread: Counter[str] = field(default_factory=Counter)

    def look_into(self, file: str) -> None:
        """Search one file, if it is source code that contains the name."""
        extension = PurePosixPath(file).suffix.lower()
        grammar = tree_sitter.BY_EXTENSION.get(extension)
        if grammar is None and extension not in PYTHON_EXTENSIONS:
            return
        try:
            data = self.root.read(file).data
            if self.symbol.rpartition(".")[2].encode() not in data:
                return
            if grammar is None:
                self.keep(file, "python", python_definitions(data))
            elif (parser := tree_sitter.parser_of(grammar)) is not None:
                self.keep(file, grammar.name, tree_sitter.definitions(parser, grammar, data))
            else:
                self.unread[grammar.name] += 1
        except NotFound:
            return
        except DecklogError as error:
            self.skipped.append(SkippedPath(file, error.message))

    def keep(self, file: str, language: str, definitions: Iterable[SymbolDefinition]) -> None:
        """Add the definitions that match the name and the requested kind."""
        for one in definitions:
            if one.answers_to(self.symbol) and self.kind in (None, one.kind):
                self.found.append(Symbol(file, one.line_number, one.kind.value, one.qualname, language))

    def result(self) -> Symbols:
        """Return the matches, sorted by path and line."""
        for language, count in self.unread.items():
            what = f"{count} {language} file{'s' * (count > 1)} with the name not looked into"
            package = f"tree-sitter-{language}".replace("tsx", "typescript")
            self.skipped.append(SkippedPath(f"*.{language}", f"{what}: {package} is not installed"))
        found = sorted(set(self.found), key=lambda one: (one.path, one.line_number, one.qualname, one.kind))
        return Symbols(tuple(found), tuple(sorted(self.skipped, key=lambda one: one.path)))
