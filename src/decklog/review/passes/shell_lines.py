"""Lines of a change that a shell will run: of scripts, of recipes of `make`, and of what builds an image."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from decklog.review.change import AddedLine

_SCRIPTS = (".sh", ".bash")
_IMAGE = re.compile(r"(?:^|/)(?:Dockerfile|Containerfile)(?:\.[\w.-]+)?$|\.dockerfile$")
_MAKE = re.compile(r"(?:^|/)(?:GNU)?[Mm]akefile$|\.mk$")
_RUN = re.compile(r"^\s*(?:RUN\s+(?:--\S+\s+)*|&&\s*|;\s*)(?!\[)(?P<command>.*?)\s*\\?$")
_RECIPE = re.compile(r"^\t\s*[@+-]*(?P<command>.*?)\s*\\?$")


def is_image(path: str) -> bool:
    """Say whether a file says how an image is built."""
    return _IMAGE.search(path) is not None


def shell_lines(path: str, lines: Sequence[AddedLine]) -> Iterator[AddedLine]:
    """Give what a shell will run of the lines that are added to a file, each as a command of its own."""
    if path.endswith(_SCRIPTS):
        yield from lines
    pattern = _RUN if is_image(path) else _RECIPE if _MAKE.search(path) else None
    for line in lines if pattern is not None else ():
        found = pattern.match(line.text) if pattern is not None else None
        if found is not None:
            yield replace(line, text=_without_make(found["command"]) if pattern is _RECIPE else found["command"])


def _without_make(command: str) -> str:
    """Spell what `make` fills in as the shell's own: its variables, and its two dollars for one."""
    return re.sub(r"\$\((\w+)\)", r"${\1}", command).replace("$$", "$")
