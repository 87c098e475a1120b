"""Task groups, which are Decklog's groups; blank text means that a field was not given."""

from typing import TYPE_CHECKING

from decklog.core.errors import NotFound
from decklog.plugins.legacy.bazinga.base import CallRefused, Desk, answers, check, given, json_text, one_of, reports, stamp
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply
from decklog.plugins.legacy.bazinga.rules import TIERS, validate_complexity, validate_task_group_id
from decklog.stores.tasks.groups import Group

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

_MOST = 1000
_BLANK_MEANS_NONE = ("status", "assigned_to", "name", "last_review_status", "initial_tier", "component_path")
_COUNTS = (
    *("revision_count", "item_count", "qa_attempts", "tl_review_attempts", "complexity", "review_iteration"),
    *("no_progress_count", "blocking_issues_count"),
)
_MAY_FALL_BELOW_ZERO = ("no_progress_count", "blocking_issues_count")


class BazingaGroups(Desk):
    """Creates groups, changes what is given of them, and lists them."""

    @reports
    def create_task_group(
        self,
        group_id: str,
        session_id: str,
        name: str,
        status: str | None = "pending",
        assigned_to: str | None = None,
        specializations: list[str] | None = None,
        item_count: int | None = None,
        component_path: str | None = None,
        initial_tier: str | None = None,
        complexity: int | None = None,
        security_sensitive: bool | None = None,
    ) -> "dict[str, Any]":
        """Create a group, or change what is given of one that is there; what is not given keeps its value.

        A status of pending is the default of a new group and takes nothing back from one that is there.
        """
        fields = _fields(locals(), "name", "status", "assigned_to", "specializations", "item_count", "component_path")
        fields |= _fields(locals(), "initial_tier", "complexity", "security_sensitive")
        return self._create(session_id, group_id, fields)

    def _create(self, session_id: str, group_id: str, fields: "dict[str, Any]") -> "dict[str, Any]":
        problem = validate_task_group_id(group_id)
        if problem is not None:
            return {"success": False, "error": problem}
        if fields.get("status") == "pending":
            del fields["status"]
        return {"success": True, "task_group": group_row(self.log.groups.add(session_id, group_id, **fields))}

    @reports
    def update_task_group(
        self,
        group_id: str,
        session_id: str,
        status: str | None = None,
        assigned_to: str | None = None,
        revision_count: int | None = None,
        last_review_status: str | None = None,
        auto_create: bool = True,
        name: str | None = None,
        specializations: list[str] | None = None,
        item_count: int | None = None,
        security_sensitive: int | bool | None = None,
        qa_attempts: int | None = None,
        tl_review_attempts: int | None = None,
        component_path: str | None = None,
        initial_tier: str | None = None,
        complexity: int | None = None,
        review_iteration: int | None = None,
        no_progress_count: int | None = None,
        blocking_issues_count: int | None = None,
        speckit_task_ids: list[str] | None = None,
    ) -> "dict[str, Any]":
        """Change what is given of a group; one that is missing is made with all of it, unless auto_create is off."""
        given_fields = {name: value for name, value in locals().items() if name not in _NOT_FIELDS}
        problem = validate_task_group_id(group_id)
        if problem is not None:
            return {"success": False, "error": problem}
        return self._update(session_id, group_id, _fields(given_fields, *given_fields), auto_create)

    def _update(self, session_id: str, group_id: str, fields: "dict[str, Any]", auto_create: bool) -> "dict[str, Any]":
        if not fields:
            return {"success": True, "task_group": group_row(self.log.groups.get(session_id, group_id))}
        try:
            group = self.log.groups.update(session_id, group_id, **fields)
        except NotFound as problem:
            if "id" not in problem.details:
                raise
            if not auto_create:
                return {"success": False, "error": f"Task group not found: {group_id}"}
            group = self.log.groups.add(session_id, group_id, **fields)
        return {"success": True, "task_group": group_row(group)}

    @answers
    def get_task_groups(self, session_id: str, status: str | None = None) -> "list[dict[str, Any]]":
        """List a session's groups in the order in which they were made."""
        return [group_row(group) for group in groups_of(self, session_id, given(status))]


_NOT_FIELDS = ("self", "group_id", "session_id", "auto_create")


def groups_of(desk: Desk, session_id: str, status: str | None = None) -> list[Group]:
    """Read all groups of a session, of one status or of all."""
    found: list[Group] = []
    after = None
    while True:
        page = desk.log.groups.find(session_id, status=status, limit=_MOST, after=after)  # type: ignore[arg-type]
        found += page
        after = page.next
        if after is None:
            return found


def _fields(values: "dict[str, Any]", *names: str) -> "dict[str, Any]":
    """Pick what was given, checked as bazinga checks it."""
    fields = {name: values[name] for name in names if values[name] is not None}
    for name in _BLANK_MEANS_NONE:
        if name in fields and not str(fields[name]).strip():
            del fields[name]
    check(validate_complexity(fields.get("complexity")))
    if "initial_tier" in fields:
        one_of("initial_tier", fields["initial_tier"], TIERS)
    if fields.get("item_count", 1) < 1:
        raise CallRefused(f"item_count must be 1 or more, got {fields['item_count']}")
    if "security_sensitive" in fields:
        fields["security_sensitive"] = bool(fields["security_sensitive"])
    for name in _MAY_FALL_BELOW_ZERO:
        if name in fields:
            fields[name] = max(fields[name], 0)
    return fields


def group_row(group: Group) -> "dict[str, Any]":
    """Return a group as a row of bazinga's table of task groups."""
    row: dict[str, Any] = {"id": group.group_id, "session_id": group.run_id}
    for name in _COLUMNS:
        value = getattr(group, name)
        row[name] = str(value) if isinstance(value, str) else value
    references = group.context_references
    row["context_references"] = json_text(None if references is None else [_number(item) for item in references])
    row["specializations"] = json_text(group.specializations)
    row["security_sensitive"] = int(group.security_sensitive)
    row["speckit_task_ids"] = json_text(group.speckit_task_ids)
    return {**row, "created_at": stamp(group.created_at), "updated_at": stamp(group.updated_at)}


_COLUMNS = (
    *("name", "status", "assigned_to", "revision_count", "last_review_status", "feature_branch", "merge_status", "complexity"),
    *("initial_tier", "context_references", "specializations", "item_count", "security_sensitive", "qa_attempts"),
    *("tl_review_attempts", "component_path", "review_iteration", "no_progress_count", "blocking_issues_count"),
    "speckit_task_ids",
)


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


# Commands

DESK = BazingaGroups


def create_task_group(desk: BazingaGroups, words: "UsageValues") -> ProgramReply:
    made = desk.create_task_group(
        words["group"],
        words["session"],
        words["name"],
        words.get("status"),
        words.get("assigned_to"),
        words.texts("specializations"),
        words.whole("item-count", low=1),
        words.get("component-path"),
        words.get("initial-tier"),
        words.whole("complexity", low=1, high=10),
        truth(words.get("security-sensitive")),
    )
    return ProgramReply(made, said=f"Task group created: {words['group']}")


def update_task_group(desk: BazingaGroups, words: "UsageValues") -> ProgramReply:
    fields: dict[str, Any] = {}
    for flag in words.flags:
        name = flag.replace("-", "_")
        if name in _COUNTS:
            fields[name] = words.whole(flag, low=1 if name in ("review_iteration", "complexity", "item_count") else 0)
        elif name in ("specializations", "speckit_task_ids"):
            fields[name] = words.texts(flag)
        elif name in ("security_sensitive", "auto_create"):
            fields[name] = truth(words.get(flag))
        else:
            fields[name] = words.get(flag)
    return ProgramReply(
        desk.update_task_group(words["group"], words["session"], **fields), said=f"Task group updated: {words['group']}"
    )


def truth(text: str | None) -> bool | None:
    """Read a truth value; anything but true, 1 and yes is false."""
    return None if text is None else text.strip().lower() in ("true", "1", "yes")


def get_task_groups(desk: BazingaGroups, words: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.get_task_groups(words["session"], words.get("status")))
