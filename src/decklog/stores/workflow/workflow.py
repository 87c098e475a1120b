"""The workflow: the next agent after each report, routing rules, and required markers of prompts."""

import re
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Literal, Protocol

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.where import Where, parse_enum
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store, StoreParts
from decklog.stores.results.workflow import PromptCheck, RouteDecision, WorkflowReadiness
from decklog.stores.workflow import drawing
from decklog.stores.workflow.records import (
    PARTS,
    ModelAssignment,
    PromptMarker,
    WorkflowDefinition,
    WorkflowRule,
    WorkflowTransition,
    WorkflowVersion,
    completed,
    digest_of,
    records_of,
    shipped,
)
from decklog.stores.workflow.router import GroupFacts, RouteQuestion, RoutingDecision, TestingMode, TestingModeLike, decide


class KnownGroup(Protocol):
    """A group of a run, with the fields of `router.Group`."""

    @property
    def group_id(self) -> str: ...
    def as_dict(self) -> dict[str, Any]: ...


class GroupLookup(Protocol):
    """Returns the groups of a run."""

    def of_run(self, run_id: str) -> Iterable[KnownGroup]: ...


class WorkflowDrawing(StrEnum):
    MERMAID = "mermaid"
    SVG = "svg"


WorkflowDrawingLike = WorkflowDrawing | Literal["mermaid", "svg"]


class Workflow(Store):
    """Stores one workflow, loaded or shipped with the package, and routes by it."""

    records = (WorkflowVersion, *PARTS)

    def __init__(self, parts: StoreParts, *, groups: Callable[[], GroupLookup]) -> None:
        super().__init__(parts)
        self._known_groups = groups

    # The definition

    @writes(owner_only=True)
    def load(self, document: dict[str, object] | None = None, *, by: str | None = None) -> WorkflowVersion:
        """Replace the workflow by a document, all of it or nothing; without one, by the one that comes with the package.

        The default fills sections that the document lacks. It may also be bazinga's transitions.json. A workflow that is
        already in use is returned unchanged. Keys that start with an underscore are comments.
        """
        given = shipped() if document is None else completed(document)
        records = records_of(given)
        digest, present = digest_of(given), self._version()
        if present is not None and present.digest == digest:
            return present.mark_already()
        version = self._add_version(str(given.get("name", "unnamed")), digest, records, by)
        # Remove records that refer to others first, and add them last.
        for part in reversed(PARTS):
            self._drop(part, [record for record in records if isinstance(record, part)])
        for part in PARTS:
            self._put_parts(part, [record for record in records if isinstance(record, part)])
        return version

    def _add_version(self, name: str, digest: str, records: list[Record], by: str | None) -> WorkflowVersion:
        present = self._version()
        names = ("transitions", "aliases", "rules", "markers", "models")
        counts: dict[str, Any] = {
            name: sum(isinstance(record, part) for record in records) for name, part in zip(names, PARTS, strict=True)
        }
        try:
            return self._db.write(
                lambda: self._add(
                    WorkflowVersion,
                    note=f"loaded {name}",
                    id=self._ids.new("wf"),
                    number=present.number + 1 if present else 1,
                    name=name,
                    digest=digest,
                    loaded_by=by,
                    loaded_at=self._now(),
                    **counts,
                )
            )
        except Conflict as problem:
            if problem.retryable:
                raise
            raise Conflict("another workflow was loaded at the same moment; look at it and load yours again") from None

    def _drop(self, part: type[Record], wanted: list[Record]) -> None:
        keep = {_key(record) for record in wanted}
        for record in self._rows(part):
            if (key := _key(record)) not in keep:
                self._remove_one(part, key)

    def _put_parts(self, part: type[Record], wanted: list[Record]) -> None:
        """Add new records and update changed ones; unchanged records get no entry."""
        present = {_key(record): record for record in self._rows(part)}
        for record in wanted:
            known, values = present.get(_key(record)), record.values()
            if known is None:
                self._add(part, **values)
            elif known != record:
                changes = {name: value for name, value in values.items() if name not in part.identity}
                self._update(part, _key(record), changes)

    def _rows(self, part: type[Record]) -> list[Record]:
        return self._select(part, f"select * from {part.table} order by {', '.join(part.identity)}")

    def _version(self) -> WorkflowVersion | None:
        return self._first(WorkflowVersion, "select * from workflow_versions order by number desc limit 1")

    def _definition(self) -> WorkflowDefinition:
        if self._version() is None:
            return WorkflowDefinition.of(records_of(shipped()))
        return WorkflowDefinition.of([record for part in PARTS for record in self._rows(part)])

    @reads
    def versions(self, *, limit: int = 20, after: str | None = None) -> Page[WorkflowVersion]:
        """List the workflows that were loaded, newest first."""
        where = Where(WorkflowVersion)
        return self._page(WorkflowVersion, where, order=("number",), limit=limit, after=after, descending=True)

    @reads
    def transitions(self, *, agent: str | None = None) -> list[WorkflowTransition]:
        """List the next agent after each report, of one agent or of all."""
        found = self._definition().transitions.values()
        return [step for step in found if agent is None or step.agent == agent]

    @reads
    def rules(self) -> list[WorkflowRule]:
        """List the rules that change routes."""
        return list(self._definition().rules.values())

    @reads
    def markers(self) -> list[PromptMarker]:
        """List the markers that each agent's prompt must contain."""
        return list(self._definition().markers.values())

    @reads
    def models(self) -> list[ModelAssignment]:
        """List the model of each agent."""
        return [ModelAssignment(agent=agent, model=model) for agent, model in self._definition().models.items()]

    # Using the workflow

    @reads
    def route(
        self,
        agent: str,
        status: str,
        *,
        run_id: str | None = None,
        group_id: str | None = None,
        testing_mode: TestingModeLike = TestingMode.FULL,
        groups: object = None,
        blocked_agent: str | None = None,
        iteration: int | None = None,
        unavailable: list[str] | None = None,
    ) -> RouteDecision:
        """Decide who comes next after an agent's report, with the reason; the same facts give the same answer.

        The groups' facts are those of the run, or those given. Nothing is claimed or counted here: the caller marks groups that
        it starts, and raises the counters of failures.
        """
        facts = self._groups(run_id, groups)
        group_id = None if group_id == "global" else group_id
        if group_id is not None and facts is not None and all(group.id != group_id for group in facts):
            raise NotFound(f"there is no group {group_id} among those of the run", group_id=group_id, run_id=run_id)
        question = RouteQuestion(
            definition=self._definition(),
            agent=agent.strip().lower(),
            status=status.strip().upper(),
            group_id=group_id,
            groups=facts or [],
            testing_mode=parse_enum(TestingMode, testing_mode, "testing_mode"),
            blocked_agent=blocked_agent,
            iteration=iteration,
            unavailable=frozenset(unavailable or ()),
        )
        return _answer(run_id, question, decide(question))

    def _groups(self, run_id: str | None, given: object) -> list[GroupFacts] | None:
        """Return the given groups, or those of the run; None if nothing is known."""
        if given is not None:
            if not isinstance(given, list):
                raise Invalid("groups is a list of objects, each with an id", field="groups")
            return [GroupFacts.of(one) for one in given]
        if run_id is None:
            return None
        return [GroupFacts.of({**one.as_dict(), "id": one.group_id}) for one in self._known_groups().of_run(run_id)]

    @reads
    def check_prompt(self, agent: str, text: str) -> PromptCheck:
        """Return the required words that are missing from an agent's prompt."""
        markers = self._definition().markers
        if agent not in markers:
            raise NotFound(f"no markers are known for {agent}", hint=f"There are markers for {', '.join(markers)}.")
        missing = [word for word in markers[agent].required if not _holds(text, word)]
        ways = [word for word in markers[agent].workflow if not _holds(text, word)]
        return {"agent": agent, "ok": not (missing or ways), "missing_required": missing, "missing_workflow": ways}

    @reads
    def ready(self) -> WorkflowReadiness:
        """Return whether there is a workflow to route by, its source and its contents."""
        version, definition = self._version(), self._definition()
        reporting = dict.fromkeys(agent for agent, _ in definition.transitions)
        return {
            "ready": bool(definition.transitions and definition.markers and definition.rules and definition.models),
            "source": "shipped" if version is None else "loaded",
            "name": version.name if version else shipped()["name"],
            "digest": version.digest if version else digest_of(shipped()),
            "transitions_count": len(definition.transitions),
            "markers_count": len(definition.markers),
            "rules_count": len(definition.rules),
            "models_count": len(definition.models),
            "agents_without_markers": [agent for agent in reporting if agent not in definition.markers],
        }

    @reads
    def draw(self, *, format: WorkflowDrawingLike = WorkflowDrawing.MERMAID, notes: dict[str, str] | None = None) -> str:
        """Draw the workflow as Mermaid text or as an SVG picture, with `notes` of a few signs beneath its agents."""
        kind = parse_enum(WorkflowDrawing, format, "format")
        definition = self._definition()
        return drawing.svg(definition, notes or {}) if kind is WorkflowDrawing.SVG else drawing.mermaid(definition)


def _answer(run_id: str | None, question: RouteQuestion, decision: RoutingDecision) -> RouteDecision:
    return {
        "run_id": run_id,
        "agent": question.agent,
        "status": question.status,
        "group_id": question.group_id,
        "applied_status": decision.applied_status,
        "next_agent": decision.next_agent,
        "action": str(decision.action),
        "include_context": decision.include_context,
        **decision.more,
        "reason": "; ".join(decision.reasons),
    }


def _key(record: Record) -> tuple[str, ...]:
    return tuple(str(getattr(record, name)) for name in record.identity)


def _holds(text: str, word: str) -> bool:
    """Return whether a text has a marker as a whole word: PASS is not in PASSWORD, nor APPROVED in APPROVED_WITH_NOTES."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
