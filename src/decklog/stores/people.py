"""Names of people, agents and gates, written so that one of them is one text."""

from decklog.errors import Invalid

LONGEST_NAME = 200


def name_of(text: str, field: str) -> str:
    """Write a name in its one form: no blanks around it, single blanks within, nothing invisible."""
    if not text.isascii():
        from unicodedata import category, normalize

        text = "".join(char for char in normalize("NFKC", text) if category(char) != "Cf")
    name = " ".join(text.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise Invalid(f"{field} is {text[:50]!r}; a name has 1 to {LONGEST_NAME} visible characters", field=field)
    return name


def is_same(one: str | None, other: str | None) -> bool:
    """Tell whether two names mean the same one, whatever their case."""
    return one is not None and other is not None and one.casefold() == other.casefold()
