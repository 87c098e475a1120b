"""What is known of statements by their text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TypeVar

    V = TypeVar("V")

_MOST = 1000
# Longer ones are written for as many rows as there are, and seldom come twice.
_LONGEST = 10_000


class Statements(dict[str, "V"]):
    """Keeps something for each statement, in a bounded room: a statement may be written for one call only."""

    def keep(self, sql: str, known: "V") -> "V":
        if len(sql) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[sql] = known
        return known


def by_place(sql: str) -> tuple[str, list[str]]:
    """Write a statement with a `?` for each named parameter, and name them in their order.

    By hand: a short call that writes one entry would import `re` for nothing else.
    """
    first, *parts = sql.split(":")
    written, names, before = [first], list[str](), first[-1:]
    for part in parts:
        name = "" if _is_word(before) or before == ":" else _name(part)
        written.append(f"?{part[len(name) :]}" if name else f":{part}")
        names += [name] if name else []
        before = part[-1:] or ":"
    return "".join(written), names


def _name(text: str) -> str:
    """Return the name at the start of a text: letters, digits and underscores, not starting with a digit or a capital."""
    end = 0
    for character in text:
        if not _is_word(character):
            break
        end += 1
    return text[:end] if "a" <= text[:1] <= "z" or text[:1] == "_" else ""


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
