"""Families: the runs that came of no other, each with its forks and the runs of its sub-agents, newest first."""

from datetime import datetime

from decklog.db.where import enum_of, page_size
from decklog.records.operations import reads_in_steps
from decklog.records.record import Page
from decklog.stores.overview import recent
from decklog.stores.overview.kin import FamiliesTable, Family
from decklog.stores.overview.looking import Base, Looking
from decklog.stores.overview.status import Status, StatusLike
from decklog.stores.overview.wanted import RunFilter


class Families(Looking):
    """Lists runs with what came of them."""

    @reads_in_steps
    def families(
        self,
        *,
        status: StatusLike | None = None,
        repo: str | None = None,
        branch: str | None = None,
        text: str | None = None,
        parent_run_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> "Page[Family]":
        """List runs by families: each that came of no other run, newest first, with its forks and sub-agents' runs and sums.

        A page has families with up to `limit` runs together; of a larger family the first `limit` are shown. Filters apply to the
        first run of a family, and an active status to any of its runs. `parent_run_id` shows this run and its children.
        """
        size, wanted = page_size(limit), RunFilter(repo, branch, text, parent_run_id, since, until)
        word = None if status is None else enum_of(Status, status, "status")
        return self._looked(lambda can_move: self._families(word, wanted, size, after, self._base(can_move)))

    def families_table(
        self,
        *,
        status: Status | None = None,
        repo: str | None = None,
        branch: str | None = None,
        text: str | None = None,
        parent_run_id: str | None = None,
        since: datetime | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> FamiliesTable:
        """List families as `families` does, with the last hour of each run and what waits for a person: at one moment."""
        size, wanted = page_size(limit), RunFilter(repo, branch, text, parent_run_id, since)
        return self._looked(lambda can_move: self._families_table(status, wanted, size, after, self._base(can_move)))

    def _families(self, word: Status | None, wanted: RunFilter, size: int, after: str | None, base: Base) -> Page[Family]:
        from decklog.stores.overview.kin import FamilyQuery, read

        return read(self._db, FamilyQuery(word, wanted, size, after), base, self._look)

    def _families_table(self, word: Status | None, wanted: RunFilter, size: int, after: str | None, base: Base) -> FamiliesTable:
        from decklog.stores.overview.kin import FamiliesTable

        page = self._families(word, wanted, size, after, base)
        runs = [member.run for family in page for member in family.runs]
        return FamiliesTable(page, len(base.items), recent.last_hour(self._db, runs, base.moment.now))
