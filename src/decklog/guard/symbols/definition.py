"""A definition or an import in a source file of any language."""

from dataclasses import dataclass
from enum import StrEnum


class SymbolKind(StrEnum):
    """What a symbol can be."""

    FUNCTION = "function"
    METHOD = "method"
    CLASS = "class"
    IMPORT = "import"


@dataclass(frozen=True)
class SymbolDefinition:
    """One definition or import. `names` are the words it can be asked for besides its qualified name."""

    line_number: int
    kind: SymbolKind
    qualname: str
    names: tuple[str, ...]

    def answers_to(self, symbol: str) -> bool:
        """Return whether someone asking for the symbol means this: `method`, `Class.method` or all of it."""
        return symbol in self.names or self.qualname == symbol or self.qualname.endswith(f".{symbol}")
