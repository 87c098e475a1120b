"""Verifying a log from the command line: step by step, so that an interrupted run continues, or only what is new."""

import json
import os
import time
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from decklog.journal.anchors import Anchors
from decklog.transfer.progress import Progress, silent
from decklog.transfer.verify_steps import Steps

if TYPE_CHECKING:
    from decklog.journal.findings import Verification
    from decklog.log import Decklog
    from decklog.stores.results.journal import StreamHead

_SECONDS_BETWEEN_SAVES = 1.0
# An older run begins anew: what it walked may have been changed since.
_SECONDS_RESUMABLE = 24 * 3600.0


class VerifyMarks:
    """What this user has verified of one log, kept in the state folder: how far an unfinished run came, and the last anchor."""

    def __init__(self, log: "Decklog") -> None:
        home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
        target = log.db.target
        place = os.path.realpath(target) if log.db.engine == "sqlite" else target
        self._folder = os.path.join(home, "decklog", "verified")
        name = os.path.join(self._folder, sha256(place.encode()).hexdigest()[:24])
        self.anchor = f"{name}.anchor"
        self._unfinished = f"{name}.unfinished"
        self._log = log.db.made_at()

    def unfinished(self) -> dict[str, Any]:
        """Return the heads that an interrupted run of the last day has walked."""
        try:
            with open(self._unfinished, encoding="utf-8") as file:
                kept = json.load(file)
            if kept["log"] == self._log and time.time() - kept["at"] < _SECONDS_RESUMABLE:
                return dict(kept["heads"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # what is not as we write it counts as not there
        return {}

    def save(self, heads: dict[str, Any]) -> None:
        """Keep how far a run has come. Where nothing can be written, an interrupted run begins anew."""
        partial = f"{self._unfinished}.{os.getpid()}"
        with suppress(OSError):
            self.make_folder()
            with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump({"log": self._log, "at": time.time(), "heads": heads}, file)
            os.replace(partial, self._unfinished)

    def finish(self) -> None:
        with suppress(OSError):
            os.unlink(self._unfinished)

    def make_folder(self) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)


def verify(log: "Decklog", *, anchor: str | None = None, full: bool = False, progress: Progress = silent) -> "Verification":
    """Verify a whole log; after an interruption, continue behind the entries that were walked before.

    With `full`, start from the beginning and compare all words of the text index, of which a large log has a sample compared.
    """
    marks = VerifyMarks(log)
    heads: dict[str, Any] = {} if full else marks.unfinished()
    steps = Steps(log, heads, full=full)
    saved_at = time.monotonic()

    def note(step: dict[str, Any]) -> None:
        nonlocal saved_at
        heads.update(step.get("heads", {}))
        if (now := time.monotonic()) - saved_at > _SECONDS_BETWEEN_SAVES:
            marks.save(heads)
            saved_at = now
        is_chain = "heads" in step
        progress("verifying entries" if is_chain else "checking what belongs to them", step["done"], step["whole"])

    try:
        result = steps.run(note)
    except BaseException:
        marks.save(heads)
        raise
    marks.finish()
    result.anchored = 0
    if anchor is not None:
        compared = log.journal.verifier().run_anchors(anchor)
        result.anchored = compared.anchored
        result.problems += compared.problems
    if result.ok:
        _keep(marks, anchor, steps.heads())
    return result


def verify_since_anchor(
    log: "Decklog", *, anchor: str | None = None, full: bool = False, progress: Progress = silent
) -> "Verification":
    """Verify what was written after the anchor, or after the last successful run; everything where there was none."""
    marks = VerifyMarks(log)
    path = anchor or marks.anchor
    if full or not any(Anchors(path).kept()):
        return verify(log, anchor=anchor, full=full, progress=progress)
    return log.journal.verify(anchor=path, since_anchor=True)


def _keep(marks: VerifyMarks, anchor: str | None, heads: "list[StreamHead]") -> None:
    if anchor is not None:
        Anchors(anchor).keep(heads)
        return
    with suppress(OSError):
        marks.make_folder()
        Anchors(marks.anchor).keep(heads)
