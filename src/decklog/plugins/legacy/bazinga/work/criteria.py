"""Success criteria: what must be true for a session to be a success."""

from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import CallRefused, Desk, answers, filled, one_of, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import CRITERION_STATUSES
from decklog.stores.intake import Intake
from decklog.stores.tasks.criteria import Criterion, CriterionStatus

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

_MOST = 1000
_KEYS = ("criterion", "status", "actual", "evidence", "required_for_completion")


class BazingaCriteria(Desk):
    """Saves criteria and what became of them."""

    @answers
    def save_success_criteria(self, session_id: str, criteria: "list[dict[str, Any]]") -> None:
        """Make a session's criteria what the list says, all or none: what it does not name is removed.

        What it does not say of one that is there is cleared; the journal keeps what was.
        """
        wanted = [_read(item) for item in _listed(criteria)]
        with self.log.transaction():
            saved = self._record(session_id, wanted)
            for known, item in zip(saved, wanted, strict=True):
                if known.already:
                    self._renew(known, item)
            self._remove_others(session_id, {criterion.number for criterion in saved})

    def _remove_others(self, session_id: str, kept: set[int]) -> None:
        for criterion in self._all(session_id):
            if criterion.number not in kept:
                Intake(self.log.parts).remove(
                    Criterion,
                    "delete from criteria where run_id = :run_id and number = :number returning *",
                    note="not in the new list",
                    run_id=session_id,
                    number=criterion.number,
                )

    def _record(self, session_id: str, wanted: "list[dict[str, Any]]") -> list[Criterion]:
        present = {criterion.criterion: criterion for criterion in self._all(session_id)}
        # Whether it is required is changed by an update alone, so what is there is recorded as it is.
        kept = [
            {**item, "required_for_completion": present[item["criterion"]].required} if item["criterion"] in present else item
            for item in wanted
        ]
        return self.log.criteria.record(session_id, kept)

    def _renew(self, known: Criterion, item: "dict[str, Any]") -> None:
        texts = {name: item.get(name) for name in ("actual", "evidence")}
        self.log.criteria.update(
            known.run_id,
            known.criterion,
            status=CriterionStatus(item.get("status") or CriterionStatus.PENDING),
            required=item.get("required_for_completion", True),
            clear=[name for name, text in texts.items() if text is None],
            **texts,
        )

    def _all(self, session_id: str) -> list[Criterion]:
        found: list[Criterion] = []
        after = None
        while True:
            page = self.log.criteria.find(session_id, limit=_MOST, after=after)
            found += page
            after = page.next
            if after is None:
                return found

    @answers
    def get_success_criteria(self, session_id: str) -> "list[dict[str, Any]]":
        """List a session's criteria in the order in which they were saved."""
        return [criterion_row(self, criterion) for criterion in self._all(session_id)]

    @answers
    def update_success_criterion(
        self,
        session_id: str,
        criterion: str,
        status: str | None = None,
        actual: str | None = None,
        evidence: str | None = None,
    ) -> None:
        """Change what is given of a criterion, named by its exact text."""
        filled("criterion", criterion)
        if status is not None:
            one_of("status", status, CRITERION_STATUSES)
        if status is None and actual is None and evidence is None:
            raise CallRefused("nothing to change was given: status, actual or evidence")
        self.log.criteria.update(
            session_id,
            criterion,
            status=None if status is None else CriterionStatus(status),
            actual=actual,
            evidence=evidence,
        )


def _listed(criteria: object) -> "list[Any]":
    if not isinstance(criteria, list) or not criteria:
        raise CallRefused("criteria must be a list of one or more objects")
    return criteria


def _read(item: object) -> "dict[str, Any]":
    if not isinstance(item, dict):
        raise CallRefused(f"each criterion is an object with the key criterion, got {item!r}")
    filled("criterion", item.get("criterion"))
    if item.get("status") is not None:
        one_of("status", item["status"], CRITERION_STATUSES)
    fields = {name: item[name] for name in _KEYS if item.get(name) is not None}
    if "required_for_completion" in fields:
        fields["required_for_completion"] = bool(fields["required_for_completion"])
    return fields


def criterion_row(desk: Desk, criterion: Criterion) -> "dict[str, Any]":
    """Return a criterion as a row of bazinga's table."""
    key = {"session_id": criterion.run_id, "criterion": criterion.criterion}
    return {
        "id": desk.id_where("success_criteria", criterion.number, **key),
        "session_id": criterion.run_id,
        "criterion": criterion.criterion,
        "status": str(criterion.status),
        "actual": criterion.actual,
        "evidence": criterion.evidence,
        "required_for_completion": int(criterion.required),
        "created_at": stamp(criterion.created_at),
        "updated_at": stamp(criterion.updated_at),
    }


# Commands

DESK = BazingaCriteria


def save_success_criteria(desk: BazingaCriteria, given: "UsageValues") -> ProgramReply:
    desk.save_success_criteria(given["session"], given.json("criteria"))
    return ProgramReply(said=f"Success criteria saved: {given['session']}")


def get_success_criteria(desk: BazingaCriteria, given: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.get_success_criteria(given["session"]))


def update_success_criterion(desk: BazingaCriteria, given: "UsageValues") -> ProgramReply:
    evidence = given.get("evidence")
    desk.update_success_criterion(
        given["session"],
        given["criterion"],
        given.get("status"),
        given.get("actual"),
        given.get("notes") if evidence is None else evidence,
    )
    return ProgramReply(said=f"Criterion updated: {given['criterion']}")
