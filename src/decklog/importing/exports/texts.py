"""A text file in another program's format: made beside its place, and there when it is whole."""

import json
import os
import tempfile
from typing import TYPE_CHECKING

from decklog.core.clock import to_text
from decklog.core.disk import sync_descriptor
from decklog.core.errors import Conflict, Invalid
from decklog.importing.exports.report import ExportReport
from decklog.importing.exports.rows import folder_of, refuse_full
from decklog.importing.leftovers import LeftoverRows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime
    from typing import Any, Self

    from decklog.log import Decklog

_PREFIX = ".decklog-export-"
_INFINITE = "Infinity"


class TextExport:
    """Writes one file. With `replace`, it takes the place of the one that is there, at one moment."""

    def __init__(
        self,
        log: "Decklog",
        path: str,
        system: str,
        *,
        replace: bool = False,
        progress: "Callable[[str, int, int], None] | None" = None,
    ) -> None:
        self.log = log
        self.path = path
        self.report = ExportReport(path, progress)
        self._system = system
        # The runs that are written; None for all.
        self.runs: Collection[str] | None = None
        self._replace = replace
        if os.path.lexists(path) and not replace:
            raise Conflict(f"{path} is there already; name a file that is not, or say --replace", path=path)

    def __enter__(self) -> "Self":
        self.kept = LeftoverRows(self.log, self._system, of_json=True, runs=self.runs)
        # Where a link leads, not in its place: who made it wants the other file to change.
        self._place = os.path.realpath(self.path)
        opened, self._file = tempfile.mkstemp(dir=folder_of(self._place), prefix=_PREFIX)
        self._out = os.fdopen(opened, "w", encoding="utf-8", newline="\n")
        return self

    def write(self, text: str) -> None:
        self._out.write(text)

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        self.kept.close()
        self._out.close()
        if os.path.exists(self._file):
            os.unlink(self._file)
        refuse_full(self.path, problem)

    def finish(self) -> "dict[str, Any]":
        """Put the file in its place; say what was written, and what was left out."""
        self._out.flush()
        sync_descriptor(self._out.fileno())
        if self._replace:
            if os.path.exists(self._place):
                # Whoever could read it there still can.
                os.chmod(self._file, os.stat(self._place).st_mode & 0o777)
            os.rename(self._file, self._place)
            return self.report.as_dict()
        try:
            os.link(self._file, self._place)
        except FileExistsError:
            raise Conflict(f"{self.path} is there already; name a file that is not", path=self.path) from None
        return self.report.as_dict()


def json_text(value: "Any", **spelling: "Any") -> str:
    """Write JSON that other programs read: numbers beyond all bounds as such, and half a character spelled out."""
    try:
        text = json.dumps(value, ensure_ascii=False, **spelling)
        if _INFINITE in text:
            mark = "@"
            while mark in text:
                mark += "@"
            text = json.dumps(_marked(value, mark), ensure_ascii=False, **spelling)
            text = text.replace(f'"-{mark}"', "-1e999").replace(f'"{mark}"', "1e999")
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, **spelling)
    except RecursionError:
        raise Invalid("it holds a value that is nested too deep to be written") from None
    return text


def _marked(value: "Any", mark: str) -> "Any":
    if isinstance(value, float) and abs(value) == float("inf"):
        return mark if value > 0 else f"-{mark}"
    if isinstance(value, dict):
        return {name: _marked(item, mark) for name, item in value.items()}
    return [_marked(item, mark) for item in value] if isinstance(value, list) else value


def short_time(moment: "datetime | None") -> str | None:
    """Spell a time without the fractions that it does not have."""
    return None if moment is None else to_text(moment).replace(".000000Z", "Z")
