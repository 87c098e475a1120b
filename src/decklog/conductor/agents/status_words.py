"""The status word that an agent ends with: the workflow says who should come next, which is a wish that facts can overrule."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from decklog.core.errors import NotFound

if TYPE_CHECKING:
    from decklog.log import Decklog

# As agents write it: "Status: READY_FOR_QA", "**STATUS:** BLOCKED".
_STATUS = re.compile(r"\bstatus\b[\s*_`]*[:=][\s*_`]*([A-Z][A-Z_]{2,40})\b", re.IGNORECASE)
# Who works on a piece, in the words of the workflow: the first agent of the ladder, and those above it.
_WORKERS = ("developer", "senior_software_engineer")


@dataclass(frozen=True)
class StatusRequest:
    """What a status word asks for: who should come next, and why."""

    status: str
    next_agent: str | None
    action: str
    reason: str

    @property
    def is_for_stronger(self) -> bool:
        """Whether it asks for the next agent of the ladder."""
        return self.next_agent == _WORKERS[1] and self.action == "spawn"

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def wish_of(log: "Decklog", said: str, rung: int) -> StatusRequest | None:
    """Read the last status word of what an agent said and ask the workflow; null when there is none that it knows."""
    words = [word for word in _STATUS.findall(said) if word.isupper()]
    if not words:
        return None
    try:
        routed = log.workflow.route(_WORKERS[min(rung, 1)], words[-1])
    except NotFound:
        return None
    return StatusRequest(words[-1], routed["next_agent"], str(routed["action"]), str(routed["reason"]))
