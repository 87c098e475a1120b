"""Outputs: results of skills by iteration, and the check that the mandatory ones ran."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from decklog.core.errors import Conflict
from decklog.db.where import Where
from decklog.records.fork_rules import ForkRule
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores import documents
from decklog.stores.base import Store
from decklog.stores.checks import check_filled, check_integer
from decklog.stores.of_run import check_run, next_number
from decklog.stores.results.artifacts import EvidenceCheck

_LONGEST_WINDOW = 10 * 365 * 24 * 60


@dataclass(frozen=True, kw_only=True)
class SkillOutput(Record):
    """One output of a skill; `iteration` counts those of the same skill, agent and group."""

    table = "outputs"
    fork = ForkRule("What a skill found still holds.", same_ids=("group_id",))
    blob_columns = ("digest", "document")

    id: str
    run_id: str
    number: int
    skill: str
    iteration: int
    digest: str
    saved_at: datetime
    agent: str | None = None
    group_id: str | None = None
    document: object = None
    redacted: bool = False
    key: str | None = None


class Outputs(Store):
    """Stores the outputs of skills by iteration, and checks that the mandatory ones ran."""

    records = (SkillOutput,)

    @writes
    def save(
        self,
        run_id: str,
        skill: str,
        document: object,
        *,
        agent: str | None = None,
        group_id: str | None = None,
        key: str | None = None,
        saved_at: datetime | None = None,
    ) -> SkillOutput:
        """Save the result of a skill, as the next iteration of this skill, agent and group."""
        names: dict[str, Any] = _names(skill=skill, agent=agent, group_id=group_id)
        output = self._find_or_add(
            lambda: self._seek_by(SkillOutput, run_id=run_id, key=key),
            lambda: self._add_output(run_id, names, document, key, saved_at or self._now()),
        )
        if output.skill != self._stored("skill", names["skill"]):
            raise Conflict(f"the key {key!r} is that of an output of {output.skill}", hint="Use another key.", id=output.id)
        return documents.load_field(self._db, output, "document", output.digest)

    def _add_output(
        self, run_id: str, names: dict[str, Any], document: object, key: str | None, saved_at: datetime
    ) -> SkillOutput:
        number = next_number(self._db, SkillOutput, run_id)
        placed = documents.store_if_long(self._db, "document", document)
        within = {name: value or "" for name, value in names.items()}
        return self._add(
            SkillOutput,
            id=self._ids.new("out"),
            run_id=run_id,
            number=number,
            iteration=next_number(self._db, SkillOutput, run_id, "iteration", **within),
            document=placed.inline,
            digest=placed.digest,
            redacted=placed.redacted,
            key=key,
            saved_at=saved_at,
            **names,
        )

    @reads
    def get(self, output_id: str) -> SkillOutput:
        """Get one output with its document."""
        output = self._fetch(SkillOutput, output_id)
        return documents.load_field(self._db, output, "document", output.digest)

    @reads
    def latest(self, run_id: str, skill: str, *, agent: str | None = None, group_id: str | None = None) -> SkillOutput | None:
        """Get the newest output of a skill, of any agent and group unless given, or null."""
        where = self._where(run_id, skill, agent, group_id)
        found = self._list(SkillOutput, where, order="number desc", limit=1)
        return documents.load_field(self._db, found[0], "document", found[0].digest) if found else None

    @reads
    def find(
        self,
        run_id: str,
        *,
        skill: str | None = None,
        agent: str | None = None,
        group_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[SkillOutput]:
        """List outputs with their documents, newest first."""
        where = self._where(run_id, skill, agent, group_id)
        page = self._page(SkillOutput, where, order=("number",), limit=limit, after=after, descending=True)
        return Page((documents.load_field(self._db, output, "document", output.digest) for output in page), next=page.next)

    def _where(self, run_id: str, skill: str | None, agent: str | None, group_id: str | None) -> Where:
        return Where(SkillOutput, run_id=run_id, **_names(skill=skill, agent=agent, group_id=group_id))

    @reads
    def check_evidence(
        self, run_id: str, skills: list[str], *, agent: str | None = None, since_minutes: int = 30
    ) -> EvidenceCheck:
        """Check that every skill named gave an output in the last minutes; an empty list is complete."""
        check_run(self._db, run_id)
        check_integer("since_minutes", since_minutes, low=1, high=_LONGEST_WINDOW)
        where = self._where(run_id, None, agent, None)
        where.between("saved_at", self._now() - timedelta(minutes=since_minutes), None)
        bound, _ = self._db.values.bind(where.bound)
        _, rows = self._db.rows(f"select distinct skill from outputs {where.sql}", bound)
        seen = {row[0] for row in rows}
        mandatory = [skill.strip() for skill in skills if skill.strip()]
        missing = [skill for skill in mandatory if skill not in seen]
        return {
            "complete": not missing,
            "missing": missing,
            "found": [skill for skill in mandatory if skill in seen],
            "mandatory": mandatory,
            "recency_window_minutes": since_minutes,
        }


def _names(**given: str | None) -> dict[str, str | None]:
    """Return the given names without blanks at their ends."""
    return {field: None if text is None else check_filled(field, text).strip() for field, text in given.items()}
