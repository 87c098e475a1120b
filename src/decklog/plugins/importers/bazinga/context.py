"""Bazinga's context packages, for whom they are, and who read them."""

from decklog.core.errors import Conflict, NotFound
from decklog.importing.report import Fate
from decklog.importing.row import EPOCH, Row
from decklog.plugins.importers.bazinga.base import BazingaTables
from decklog.stores.workflow.context import (
    ConsumingAgent,
    ContextAgent,
    ContextConsumer,
    ContextConsumption,
    ContextPackage,
    ContextScope,
    PackagePriority,
    PackageType,
)

_LONGEST_SUMMARY = 200


class ContextTables(BazingaTables):
    """Packages keep their numbers where these are free in this log."""

    # The file's package ids, and the runs they are of.
    packages: dict[str, str]

    def package(self, row: Row) -> Fate:
        """Take a package over."""
        run_id = self.in_run(row)
        number = row.take("id")
        package_id = package_id_of(run_id, number)
        group_id = row.text("group_id")
        if (row.take("scope", "group") == ContextScope.GLOBAL) != (group_id is None):
            row.replace("scope", ContextScope.GLOBAL.value if group_id is None else ContextScope.GROUP.value)
        if row.take("version", 1) != 1:
            row.replace("version", 1)
        fate = self.landing.record(
            ContextPackage,
            id=package_id,
            number=self._number(package_id, number),
            run_id=run_id,
            group_id=group_id,
            scope=ContextScope.GLOBAL if group_id is None else ContextScope.GROUP,
            package_type=row.needed("package_type", PackageType),
            file_path=row.text("file_path", ""),
            producer=row.needed("producer_agent", ContextAgent),
            priority=row.one_of("priority", PackagePriority, PackagePriority.MEDIUM),
            summary=_summary(row),
            size_bytes=row.whole("size_bytes"),
            created_at=row.time("created_at", EPOCH),
        )
        self.packages[str(number)] = run_id
        return fate

    def _number(self, package_id: str, number: object) -> int:
        """Return the file's number when nobody here has it, and the next one otherwise."""
        if type(number) is int and number > 0:
            try:
                present: ContextPackage = self.log.context.get(str(number))
            except NotFound:
                return number
            if present.id == package_id:
                return number
        row = self.log.db.one("select coalesce(max(number), 0) + 1 from packages", {})
        return int(row[0]) if row else 1

    def consumer(self, row: Row) -> Fate:
        """Take over for whom a package is; one who read it in several iterations is one consumer here."""
        package_id, run_id = self._package_of(row)
        agent = row.needed("agent_type", ContextAgent)
        iteration, consumed_at = row.whole("iteration", 1), row.time("consumed_at")
        row.made = f"consumer {package_id} {agent}"
        is_known = not self.landing.first_time(row)
        if is_known:
            row.left = {}
        elif self.landing.intake.seek(ContextConsumer, (package_id, agent)) is not None:
            raise Conflict(f"{agent} is a consumer of package {row.columns['package_id']} already")
        return self.landing.record(
            ContextConsumer,
            package_id=package_id,
            agent=agent,
            run_id=run_id,
            iteration=iteration,
            consumed_at=consumed_at,
        )

    def consumption(self, row: Row) -> Fate:
        """Take over who used a package in which iteration."""
        package_id, run_id = self._package_of(row)
        row.take("session_id")
        scope_id = row.text("scope_id")
        return self.landing.record(
            ContextConsumption,
            id=f"use_{scope_id}",
            scope_id=scope_id,
            run_id=run_id,
            group_id=row.text("group_id", ""),
            agent=row.needed("agent_type", ConsumingAgent),
            iteration=row.whole("iteration", 0),
            package_id=package_id,
            consumed_at=row.time("consumed_at", EPOCH),
        )

    def _package_of(self, row: Row) -> tuple[str, str]:
        """Find the package that a row is about, and place the row in its run."""
        number = row.take("package_id")
        if str(number) not in self.packages:
            raise NotFound(f"its package {number} is not in the file, or could not be taken")
        run_id = row.stream = self.packages[str(number)]
        return package_id_of(run_id, number), run_id


def package_id_of(run_id: str, number: object) -> str:
    return f"pkg_{run_id}_{number}"


def _summary(row: Row) -> str:
    """Take the summary; one that is longer than ours may be is kept beside the package."""
    summary = " ".join(str(row.text("summary", "")).splitlines())
    short = summary if len(summary) <= _LONGEST_SUMMARY else summary[: _LONGEST_SUMMARY - 3] + "..."
    if short != row.columns.get("summary") and row.columns.get("summary") is not None:
        row.replace("summary", short)
    return short
