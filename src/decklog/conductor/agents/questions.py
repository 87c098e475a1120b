"""What an agent asks leave for and the policy leaves open: a person is asked, and the client of the agent gets the answer."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decklog.records.values import to_json
from decklog.stores.causes import cause_of

if TYPE_CHECKING:
    from decklog.log import Decklog
    from decklog.stores.approvals.approval import Approval

SOURCE = "conductor.permission"
_LOOK_SECONDS = 0.5


class Questions:
    """The open questions of one session. A yes is for exactly this act in this task, in later attempts at it too."""

    def __init__(self, log: "Decklog", run_id: str, task_id: str, folder: Path) -> None:
        self._log = log
        self._run_id = run_id
        self._task_id = task_id
        self._folder = folder
        self._open: dict[int, str] = {}
        self._since = self._looked = 0.0

    @property
    def seconds(self) -> float:
        """How long a person has been waited for; nothing when nobody is."""
        return time.monotonic() - self._since if self._open else 0.0

    @property
    def newest(self) -> str | None:
        """The approval that is waited for."""
        return list(self._open.values())[-1] if self._open else None

    def ask(self, agent: str, asked: Mapping[str, Any]) -> None:
        """Ask a person, unless the stream is read again and there is an answer, or the same was answered before."""
        number, about = int(asked["number"]), asked.get("about")
        if self._path(number).exists():
            return
        digest = hashlib.sha256(to_json(about).encode()).hexdigest()
        approval = self._log.approvals.ask(
            self._run_id,
            f"Let {agent} do this? {asked.get('text')}",
            by="conductor",
            about=about,
            task_id=self._task_id,
            source=SOURCE,
            payload={**cause_of(asked.get("cause")), "tier": self._log.trust.status()["tier"]},
            key=f"permission:{self._task_id}:{digest}",
        )
        self._since = self._since if self._open else time.monotonic()
        self._open[number] = approval.id
        self._looked = 0.0

    def look(self) -> None:
        """Hand on what a person has answered."""
        if not self._open or time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        for number, approval_id in list(self._open.items()):
            approval = self._log.approvals.get(approval_id)
            if approval.state != "open":
                self._write(number, self._answer(approval))
                del self._open[number]

    def _answer(self, approval: "Approval") -> dict[str, object]:
        # Where a manager is bound, only what the manager proved counts.
        is_granted = self._log.approvals.granted_for(self._run_id, str(approval.subject_digest)) is not None
        is_meant = approval.state == "granted" and is_granted
        return {"allow": is_meant, "reason": approval.rationale or f"a person has not allowed it ({approval.state.value})"}

    def _write(self, number: int, said: dict[str, object]) -> None:
        new = self._path(number).with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(said), encoding="utf-8")
        new.rename(self._path(number))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.json"
