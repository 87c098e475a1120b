"""A program's text without its comments, and without what its strings say: blanks stand there instead."""

import re
from dataclasses import dataclass

_SLASHES = (
    *("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte", "go", "rs", "java", "kt", "kts", "scala", "swift"),
    *("dart", "c", "h", "cc", "cpp", "cxx", "hpp", "cs", "php", "groovy", "gradle", "proto", "scss", "less", "css", "jsonc"),
    *("m", "mm", "zig", "sol"),
)
_DASHES = ("sql", "lua", "hs", "elm")
# What has lines of notes after two slashes and strings in single quotes; elsewhere a single quote holds one sign.
_QUOTING = (
    "js",
    "jsx",
    "mjs",
    "cjs",
    "ts",
    "tsx",
    "mts",
    "cts",
    "vue",
    "svelte",
    "php",
    "dart",
    "groovy",
    "gradle",
    "css",
    "scss",
)
_BLOCK = r"/\*.*?(?:\*/|\Z)"
_DOUBLE = r'"(?:\\.|[^"\\\n])*"'
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_SIGN = r"'(?:\\.[^'\n]{0,8}|[^'\\\n])'"
_TRIPLE = r'"""(?:\\.|[^\\])*?(?:"""|\Z)' + r"|'''(?:\\.|[^\\])*?(?:'''|\Z)"
_TICKS = r"`(?:\\.|[^`\\])*`"
_HASH = r"(?:(?<=\s)|^)\#[^\n]*"
_RULES = {
    "slashes": (rf"//[^\n]*|{_BLOCK}", rf"{_TRIPLE}|{_DOUBLE}|{_SIGN}|{_TICKS}"),
    "quoting": (rf"(?<!:)//[^\n]*|{_BLOCK}", rf"{_TRIPLE}|{_DOUBLE}|{_SINGLE}|{_TICKS}"),
    "dashes": (rf"--[^\n]*|{_BLOCK}", rf"{_DOUBLE}|{_SINGLE}"),
    "python": (r"\#[^\n]*", rf"{_TRIPLE}|{_DOUBLE}|{_SINGLE}"),
    "hashes": (_HASH, rf"{_DOUBLE}|{_SINGLE}"),
    "pages": (r"<!--.*?(?:-->|\Z)", r"(?!)"),
    "none": (r"(?!)", _DOUBLE),
}
_COMPILED = {
    name: re.compile(f"(?P<text>{texts})|(?P<note>{notes})", re.DOTALL | re.MULTILINE) for name, (notes, texts) in _RULES.items()
}
# Nobody wrote such a line: it was made, and would cost more to look through than it can tell.
_LONG = re.compile(r"[^\n]{2000,}")


@dataclass(frozen=True)
class Blanked:
    """A text three ways: as code without notes, bare of what strings say too, and the notes, each with its place."""

    code: str
    bare: str
    notes: tuple[tuple[int, str], ...]


def blanked(text: str, suffix: str) -> Blanked:
    """Blank the comments of a file, and what its strings say, by how its name ends."""
    code, bare = list(text), list(text)
    notes = []
    for long in _LONG.finditer(text):
        _blank(code, *long.span(), by="\1")
        _blank(bare, *long.span(), by="\1")
    for found in _COMPILED[_family(suffix.removeprefix("."))].finditer(text):
        first, last = found.span()
        if found["note"] is not None:
            notes.append((first, found["note"]))
            _blank(code, first, last)
            _blank(bare, first, last)
        else:
            # What Python spells raw is a pattern or a path: nobody runs what it says.
            if suffix in (".py", ".pyi") and text[first - 1 : first] in ("r", "R"):
                _blank(code, first + 1, last - 1)
            edge = 3 if found[0][:3] in ('"""', "'''") and last - first >= 6 else 1
            _blank(bare, first + edge, last - edge)
    return Blanked("".join(code), "".join(bare), tuple(notes))


def _family(suffix: str) -> str:
    if suffix in ("py", "pyi"):
        return "python"
    if suffix in _QUOTING:
        return "quoting"
    if suffix in _SLASHES:
        return "slashes"
    if suffix in _DASHES:
        return "dashes"
    if suffix in ("html", "htm", "xml", "j2", "erb", "jinja", "md"):
        return "pages"
    return "none" if suffix == "json" else "hashes"


def _blank(signs: list[str], first: int, last: int, by: str = " ") -> None:
    for place in range(first, last):
        if signs[place] not in ("\n", "\1"):
            signs[place] = by
