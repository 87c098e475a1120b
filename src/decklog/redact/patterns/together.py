"""All signs in one look, by Hyperscan where it is installed.

RE2 makes its tables as texts come, and all signs together would need more of them than any cache holds; so it is asked for a few
at a time. Hyperscan makes its tables beforehand. That takes seconds, so they are made once for all programs of this installation,
and kept beside the compiled modules; the file may be deleted at any time. Until there are any, the answer is left to RE2.
"""

import os
import re
import sys
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from importlib.util import cache_from_source
from typing import TYPE_CHECKING, Any

from decklog.redact.patterns.presence import loosened

if TYPE_CHECKING:
    from hyperscan import Database

# What is worth the time to make the tables, and what it is where they can't be kept for others.
_MANY, _MANY_FOR_ONE = 2_000, 50_000
_DIGEST = 32
_FOLDER, _MODULE = os.path.split(cache_from_source(__file__))
# Another Python has its own.
_PYTHON = _MODULE.split(".")[1]
_ESCAPED = re.compile(r"\\.")
_CLASS_OR_BLANK = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.")
_FLAGS = re.compile(r"\(\?[a-z]+\)")
_PIECE = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|[()|]")
_LONG_PART = 4_000
_BLANKS = r"\t\n\f\r "
# Another number for tables that are made otherwise of the same signs.
_LAYOUT = 2

Shown = Callable[[bytes], list[int]]


def respelled(pattern: str) -> str:
    """Write a pattern of RE2 as Hyperscan reads it: to the one a vertical tab is a blank, to the other it is none."""
    return _CLASS_OR_BLANK.sub(_respelled_piece, pattern)


def _respelled_piece(match: re.Match[str]) -> str:
    piece = match[0]
    if piece[0] == "[":
        if "\\S" in _ESCAPED.findall(piece):
            raise ValueError("what is no blank can't be told within a class")
        return _ESCAPED.sub(lambda escaped: _BLANKS if escaped[0] == "\\s" else escaped[0], piece)
    return {"\\s": f"[{_BLANKS}]", "\\S": f"[^{_BLANKS}]"}.get(piece, piece)


def parts(pattern: str, longest: int = _LONG_PART) -> list[str]:
    """Cut a pattern into several that match together what it matches: Hyperscan takes none that is too large."""
    flags = _FLAGS.match(pattern)
    first, depth, cuts, start = flags[0] if flags else "", 0, list[str](), flags.end() if flags else 0
    begun = start
    for piece in _PIECE.finditer(pattern, start):
        depth += (piece[0] == "(") - (piece[0] == ")")
        if piece[0] == "|" and depth == 0 and piece.start() - begun > longest:
            cuts.append(first + pattern[begun : piece.start()])
            begun = piece.end()
    return [*cuts, first + pattern[begun:]]


class Together:
    """The numbers of the signs that a text has, once there are tables that tell them all."""

    def __init__(self, signs: dict[int, str] | Callable[[], dict[int, str]], name: str = "together") -> None:
        """Take the signs by their numbers, or what gives them once they are asked for."""
        self._given = signs
        # What the file of the tables is called: those of another name stay when these are made anew.
        self._name = name
        # How many texts are looked at otherwise before tables are made; none, for good, where they can't be.
        self._left = -1
        self._is_new = True
        self.look: Shown | None = None

    @cached_property
    def signs(self) -> dict[int, str]:
        """Give the signs by their numbers."""
        return self._given() if callable(self._given) else self._given

    def ask(self, texts: int = 1) -> Shown | None:
        """Give the look, if there is one; if there is none, so many texts are about to be looked at otherwise."""
        if self._is_new:
            self._is_new = False
            self._begin()
        elif self._left > 0 and self.look is None:
            self._left -= texts
            if self._left <= 0:
                self._make_beside()
        return self.look

    def _begin(self) -> None:
        try:
            import hyperscan
        except ImportError:
            return
        try:
            with open(self._path(), "rb") as file:
                kept = file.read()
            if sha256(kept[_DIGEST:]).digest() == kept[:_DIGEST]:
                self._use(hyperscan.loadb(kept[_DIGEST:], hyperscan.HS_MODE_BLOCK))
                return
        except (OSError, hyperscan.error):
            # There are none yet, or those of another machine.
            pass
        self._left = _MANY_FOR_ONE if sys.dont_write_bytecode or not os.access(_FOLDER, os.W_OK) else _MANY

    def _path(self) -> str:
        """Give the file of the tables: other signs, another Hyperscan or another kind of machine have another."""
        import hyperscan

        said = (_LAYOUT, getattr(hyperscan, "__version__", ""), os.uname().machine, sys.byteorder, sorted(self.signs.items()))
        return os.path.join(_FOLDER, f"{self._kept()}-{sha256(repr(said).encode()).hexdigest()[:16]}.tables")

    def _kept(self) -> str:
        return f"{self._name}.{_PYTHON}"

    def _make_beside(self) -> None:
        """Make the tables in a thread, to whose end a program waits before it ends: C++ must not be left in the middle."""
        from threading import Thread

        try:
            Thread(target=self._make_or_leave, name="decklog-signs").start()
        except RuntimeError:
            # There are too many already, or the program is about to end: RE2 goes on.
            return

    def _make_or_leave(self) -> None:
        import hyperscan

        try:
            self.make()
        except hyperscan.error:
            # A Hyperscan that can't make them, as of another version: RE2 goes on.
            return

    def make(self) -> None:
        """Make the tables, which from then on serve this program, and keep them for others."""
        import hyperscan

        tables = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
        flags = hyperscan.HS_FLAG_SINGLEMATCH | hyperscan.HS_FLAG_ALLOWEMPTY
        written = [(number, part) for number, sign in self.signs.items() for part in parts(respelled(loosened(sign)))]
        patterns = [f"(?m){part}".encode("latin-1") for _, part in written]
        tables.compile(patterns, [number for number, _ in written], len(patterns), [flags] * len(patterns))
        self._keep(hyperscan.dumpb(tables))
        self._use(tables)

    def _keep(self, tables: bytes) -> None:
        if sys.dont_write_bytecode:
            return
        path = self._path()
        new = f"{path}.{os.getpid()}"
        try:
            with open(new, "xb") as file:
                file.write(sha256(tables).digest() + tables)
            os.replace(new, path)
            for other in os.listdir(_FOLDER):
                # Of rules that have changed since or of a program that was killed.
                if other.startswith(f"{self._kept()}-") and ".tables" in other and other != os.path.basename(path):
                    os.unlink(os.path.join(_FOLDER, other))
        except OSError:
            # Whoever comes next makes them anew.
            return

    def _use(self, tables: "Database") -> None:
        from hyperscan import Scratch

        # One for each thread that looks at the same time.
        free: list[Scratch] = [Scratch(tables)]
        scan = tables.scan

        def look(data: bytes) -> list[int]:
            shown: list[int] = []
            try:
                scratch = free.pop()
            except IndexError:
                scratch = Scratch(tables)
            try:
                scan(data, _note, 0, shown, scratch)
            finally:
                free.append(scratch)
            return shown

        self.look = look


def _note(number: int, _start: int, _end: int, _flags: int, shown: Any) -> None:
    # Several patterns may be the parts of one sign.
    if number not in shown:
        shown.append(number)
