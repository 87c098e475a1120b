"""How a pattern begins: enough of it to find where a match could start, little enough to stay cheap.

Searching for a hundred whole rules at once makes the matcher's tables explode wherever one of them matches.
Their beginnings are short, so the tables stay small, and the rule in question is then tried at that place.
"""

from collections.abc import Iterator

_MOST_REPEATS = 6


def beginning(pattern: str) -> str:
    """Give a pattern that matches the beginning of whatever the given one matches."""
    starts = [_cut(alternative) for alternative in _alternatives(pattern)]
    return starts[0] if len(starts) == 1 else "(?:" + "|".join(starts) + ")"


def from_literal(pattern: str) -> str:
    """Give what a pattern matches from the first character on that is always the same: it is wherever the whole pattern is.

    A matcher that looks for characters need not follow every word then, to see whether a match begins with it.
    """
    atoms = list(_atoms(pattern))
    for place, atom in enumerate(atoms):
        following = atoms[place + 1] if place + 1 < len(atoms) else ""
        if len(atom) == 1 and atom not in "^$.*+?|" and not following.startswith(("?", "*", "{0")):
            return pattern if "|" in atoms else "".join(atoms[place:])
    return pattern


def _alternatives(pattern: str) -> Iterator[str]:
    """Split a pattern at the bars that are in no group."""
    part = ""
    for atom in _atoms(pattern):
        if atom == "|":
            yield part
            part = ""
        else:
            part += atom
    yield part


def _atoms(pattern: str) -> Iterator[str]:
    """Split a pattern into characters, classes, groups and what repeats them."""
    place = 0
    while place < len(pattern):
        end = _atom_end(pattern, place)
        yield pattern[place:end]
        place = end


def _atom_end(pattern: str, place: int) -> int:
    char = pattern[place]
    if char == "\\":
        return place + 2
    if char == "{":
        return pattern.index("}", place) + 1
    if char == "[":
        return _class_end(pattern, place)
    if char == "(":
        return _group_end(pattern, place)
    return place + 1


def _class_end(pattern: str, place: int) -> int:
    place += 2
    while pattern[place] != "]":
        place += 2 if pattern[place] == "\\" else 1
    return place + 1


def _group_end(pattern: str, place: int) -> int:
    place += 1
    while pattern[place] != ")":
        place = _atom_end(pattern, place)
    return place + 1


def _cut(pattern: str) -> str:
    """Keep a pattern up to its first repetition, and little of that."""
    kept: list[str] = []
    for atom in _atoms(pattern):
        if atom[0] == "{":
            least = int(atom[1:-1].split(",")[0])
            return "".join(kept) + f"{{{min(least, _MOST_REPEATS)}}}"
        if atom[0] in "*+":
            return "".join(kept[:-1] if atom[0] == "*" else kept)
        if atom[0] == "(" and any(mark in atom for mark in "{*+"):
            opening, inner = _opened(atom)
            return "".join(kept) + opening + beginning(inner) + ")"
        kept.append(atom)
    return "".join(kept)


def _opened(group: str) -> tuple[str, str]:
    """Split a group into its opening, flags included, and what it holds."""
    opening = group[: group.index(":") + 1] if group.startswith("(?") else "("
    return opening, group[len(opening) : -1]
