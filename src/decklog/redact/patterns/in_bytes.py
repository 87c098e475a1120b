"""A pattern for letters, written as one for the bytes of a view that matches wherever the first one would, and in more places.

The bytes have a question mark for every letter that one alphabet lacks. What only looks around is left out, as are the edges of
words: which letters are part of a word is another matter in bytes.
"""

import re

_PIECE = re.compile(
    r"(?P<around>\(\?<?[=!])|(?P<group>\((?:\?(?:[a-z-]*[:)]|P<\w+>))?)|(?P<closing>\))|(?P<inside>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<escaped>\\.)|(?P<counted>\{\d+(?:,\d*)?\}|[*+?])(?P<whole>[+?]?)|(?P<other>[^\x00-\x7f])"
)
_OTHERS = r"?\x80-\xff"
_WITHIN = {r"\w": rf"\w{_OTHERS}", r"\d": r"0-9?", r"\s": r"\t\n\f\r \x0b\x1c-\x1f\x85\xa0?"}
_ALONE = {r"\b": "", r"\Z": "$", **{escaped: f"[{within}]" for escaped, within in _WITHIN.items()}}
_MEMBER = re.compile(r"\\.|[^\x00-\x7f]|.", re.DOTALL)


def in_bytes(pattern: str) -> str:
    """Give the pattern for bytes."""
    written, position, looked_around, depth = list[str](), 0, 0, 0
    for piece in _PIECE.finditer(pattern):
        if not looked_around:
            written.append(pattern[position : piece.start()])
        position = piece.end()
        opens = bool(piece["around"] or (piece["group"] and not piece["group"].endswith(")")))
        if looked_around:
            depth += opens - bool(piece["closing"])
            looked_around = depth > 0
        elif piece["around"]:
            looked_around, depth = 1, 1
        else:
            written.append(_written(piece))
    return "".join([*written, pattern[position:]])


def _written(piece: re.Match[str]) -> str:
    if piece["inside"]:
        return _inside(piece["inside"])
    if piece["escaped"]:
        return _ALONE.get(piece["escaped"], piece["escaped"])
    if piece["counted"]:
        # What is taken whole, or as little as can be, is a matter of which match is found, not whether there is any.
        return piece["counted"]
    if piece["group"] and piece["group"].startswith("(?P<"):
        return "(?:"
    return f"[{_other(piece[0])}]" if piece["other"] else piece[0]


def _inside(given: str) -> str:
    """Write what stands in brackets: the complement of letters that bytes have not is left as large as it can be."""
    members = _MEMBER.findall(given[1:-1])
    if members[0] != "^":
        return f"[{''.join(_member(member) for member in members)}]"
    if r"\W" in members:
        return rf"[\w{_OTHERS}]"
    return f"[{''.join(member for member in members if member.isascii())}]"


def _member(member: str) -> str:
    return _WITHIN.get(member, member) if member.isascii() else _other(member)


def _other(letter: str) -> str:
    # One that bytes have may be written as a capital.
    return _OTHERS if letter <= "\xff" else "?"
