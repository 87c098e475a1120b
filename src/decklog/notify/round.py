"""One round: find events to report and send the notices that are due."""

import os
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid, NotFound
from decklog.notify.events import events
from decklog.notify.sending import SendOutcome, send

if TYPE_CHECKING:
    from typing import Any

    from decklog import Decklog, Notice

_MOST_SENT = 100


@dataclass(frozen=True, kw_only=True)
class RoundSummary:
    """What a round did."""

    made: int
    sent: int
    failed: int
    unknown: int
    notices: "list[Notice]"

    def as_dict(self) -> "dict[str, Any]":
        return {**vars(self), "notices": [notice.as_dict() for notice in self.notices]}


class Round:
    """Makes notices by the rules that count, and sends those that are due. Several at once send each once."""

    def __init__(self, log: "Decklog", *, log_name: str = "decklog") -> None:
        self._log = log
        self._name = log_name
        self._sender = f"{socket.gethostname()}:{os.getpid()}"

    def run(self) -> RoundSummary:
        """Do one round."""
        made = self.make()
        settled = self.send_due()
        states = [notice.state.value for notice in settled]
        return RoundSummary(
            made=made,
            sent=states.count("sent"),
            failed=states.count("failed") + states.count("due"),
            unknown=states.count("unknown"),
            notices=settled,
        )

    def make(self) -> int:
        """Make the notices that there are not yet; count them."""
        made = 0
        for rule in self._log.notices.counting_rules():
            found = {event.key: event for event in events(self._log, rule.event.value, rule.set_at)}
            for key in self._log.notices.unknown_to(rule.id, list(found)):
                notice = self._log.notices.note(rule.id, key, found[key].what, run_id=found[key].run_id)
                made += not notice.already
        return made

    def send_due(self) -> "list[Notice]":
        """Send what is due, each after it was taken and before it is settled."""
        settled: list[Notice] = []
        while len(settled) < _MOST_SENT and (notice := self._log.notices.take(self._sender)) is not None:
            outcome = self._sent(notice)
            settled.append(
                self._log.notices.settle(
                    notice.id,
                    attempts=notice.attempts,
                    state=outcome.state,  # type: ignore[arg-type]
                    error=outcome.error,
                    may_retry=outcome.may_retry,
                )
            )
        return settled

    def _sent(self, notice: "Notice") -> SendOutcome:
        try:
            rule = next(rule for rule in self._log.notices.counting_rules() if rule.id == notice.rule_id)
        except StopIteration:
            return SendOutcome("failed", "its rule is gone, or does not count", may_retry=False)
        return send(rule, notice, self._name, int(self._log.clock.now().timestamp()))

    def test(self, rule_id: str) -> "Notice":
        """Send one notice by a rule now, to see whether it arrives; it is kept like any other."""
        rule = next((rule for rule in self._log.notices.counting_rules() if rule.id == rule_id), None)
        if rule is None:
            self._log.notices.rule(rule_id)
            raise Invalid(f"rule {rule_id} is not proven by the manager, so nothing is sent by it", field="rule_id")
        now = self._log.clock.now()
        made = self._log.notices.note(rule_id, f"test:{now.isoformat()}", "A test: this is how you will be told.")
        for notice in self.send_due():
            if notice.id == made.id:
                return notice
        raise NotFound(f"somebody else sends notice {made.id}", hint=f"See: decklog notices show {made.id}", id=made.id)
