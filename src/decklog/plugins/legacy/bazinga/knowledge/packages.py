"""Context packages: files that one agent leaves for others."""

import os
from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import CallRefused, Desk, answers, check, filled, one_of
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import AGENTS, validate_scope_global_or_group, validate_task_group_id
from decklog.stores.workflow.context import ContextAgent, ContextPackage, PackagePriority, PackageType

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

_TYPES = tuple(PackageType)
_PRIORITIES = tuple(PackagePriority)


class Packages(Desk):
    """Saves packages, offers them to those they are for, and marks them as read."""

    @answers
    def save_context_package(
        self,
        session_id: str,
        group_id: str,
        package_type: str,
        file_path: str,
        producer_agent: str,
        consumers: list[str],
        priority: str,
        summary: str,
        size_bytes: int | None = None,
        supersedes_id: int | None = None,
    ) -> "dict[str, Any]":
        """Leave a file of bazinga/artifacts/SESSION/ for other agents; one that is superseded is offered no more."""
        check(validate_scope_global_or_group(group_id))
        one_of("package_type", package_type, _TYPES)
        one_of("priority", priority, _PRIORITIES)
        filled("summary", summary)
        named = sorted({_agent("consumer", name) for name in _listed(consumers)})
        producer = _agent("producer_agent", producer_agent)
        path, real = self._artifact(session_id, file_path)
        self.expect_session(session_id)
        package = self.log.context.save(
            session_id,
            PackageType(package_type),
            path,
            ContextAgent(producer),
            summary,
            consumers=named,
            group_id=group_id,
            priority=PackagePriority(priority),
            size_bytes=_size(real) if size_bytes is None else size_bytes,
            supersedes=None if supersedes_id is None else str(supersedes_id),
        )
        return {"package_id": package.number, "file_path": package.file_path, "consumers_created": len(named)}

    def _artifact(self, session_id: str, file_path: str) -> tuple[str, str]:
        """Find a file below the session's artifacts, through links; give the path to store, and where it is."""
        filled("file_path", file_path)
        folder = os.path.join(self.project_root, "bazinga", "artifacts", session_id)
        inside = os.path.realpath(folder)
        # A relative path is the caller's, or else the project's.
        for base in (os.getcwd(), self.project_root):
            real = os.path.realpath(os.path.join(base, file_path))
            if real.startswith(inside + os.sep):
                rest = os.path.relpath(real, inside).replace(os.sep, "/")
                return f"bazinga/artifacts/{session_id}/{rest}", real
        raise CallRefused(f"file_path must lie inside bazinga/artifacts/{session_id}/, got {file_path!r}")

    @answers
    def get_context_packages(
        self, session_id: str, group_id: str, agent_type: str, limit: int = 3, include_consumed: bool = False
    ) -> "list[dict[str, Any]]":
        """List what is there for an agent, of its group and of the whole session, the most urgent first."""
        check(validate_scope_global_or_group(group_id))
        if type(limit) is not int or not 1 <= limit <= 50:
            raise CallRefused(f"limit must be from 1 to 50, got {limit!r}")
        agent = agent_type.strip().lower()
        if agent not in AGENTS:
            return []
        offered = self.log.context.offer(
            session_id, ContextAgent(agent), group_id=group_id, limit=limit, include_consumed=include_consumed
        )
        return [_row(package) for package in offered]

    @answers
    def mark_context_consumed(self, package_id: int, agent_type: str, iteration: int = 1) -> bool:
        """Mark a package as read by one of those it is for; marking it again changes nothing."""
        self.log.context.consume(str(package_id), ContextAgent(_agent("agent_type", agent_type)), iteration=iteration)
        return True

    @answers
    def update_context_references(self, group_id: str, session_id: str, package_ids: list[int]) -> None:
        """Set the packages that a group refers to."""
        check(validate_task_group_id(group_id))
        if not isinstance(package_ids, list) or not all(type(number) is int for number in package_ids):
            raise CallRefused("package_ids must be a list of integers")
        self.log.groups.update(session_id, group_id, context_references=[str(number) for number in package_ids])


def _agent(name: str, given: object) -> str:
    agent = given.strip().lower() if isinstance(given, str) else given
    one_of(name, agent, AGENTS)
    return str(agent)


def _listed(consumers: object) -> "list[Any]":
    if not isinstance(consumers, list) or not consumers:
        raise CallRefused("consumers must be a list of one or more agents")
    return consumers


def _size(path: str) -> int | None:
    return os.path.getsize(path) if os.path.isfile(path) else None


def _row(package: ContextPackage) -> "dict[str, Any]":
    return {
        "id": package.number,
        "package_type": str(package.package_type),
        "priority": str(package.priority),
        "summary": package.summary,
        "file_path": package.file_path,
        "size_bytes": package.size_bytes,
        "group_id": package.group_id,
    }


# Commands

DESK = Packages


def save_context_package(desk: Packages, words: "UsageValues") -> ProgramReply:
    saved = desk.save_context_package(
        words["session"],
        words["group"],
        words["type"],
        words["file"],
        words["producer"],
        words.json("consumers"),
        words["priority"],
        words["summary"],
        supersedes_id=words.whole("supersedes", low=1),
    )
    return ProgramReply(saved, said=f"Context package saved: {saved['package_id']}")


def get_context_packages(desk: Packages, words: "UsageValues") -> ProgramReply:
    limit = words.whole("limit", low=1, high=50)
    found = desk.get_context_packages(
        words["session"], words["group"], words["agent"], 3 if limit is None else limit, words.has("include-consumed")
    )
    return ProgramReply(found)


def mark_context_consumed(desk: Packages, words: "UsageValues") -> ProgramReply:
    package, iteration = words.whole("package"), words.whole("iteration", low=0)
    assert package is not None
    desk.mark_context_consumed(package, words["agent"], 1 if iteration is None else iteration)
    return ProgramReply(said=f"Package {package} consumed by {words['agent']}")


def update_context_references(desk: Packages, words: "UsageValues") -> ProgramReply:
    group, session = words["group"], words["session"]
    if not desk.is_session(session) and desk.is_session(group):
        group, session = session, group
    desk.update_context_references(group, session, words.json("packages"))
    return ProgramReply(said=f"Context references updated: {group}")
