"""The base of bazinga's database: the open log, errors and times in bazinga's words, and checks of ids, statuses and numbers."""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import wraps
from typing import Any, NoReturn, Self, TypeVar, cast

from decklog.core.clock import Clock, from_text
from decklog.core.errors import Conflict, Damaged, DecklogError, Denied, NotADatabase, NotFound
from decklog.journal.entry import Entry
from decklog.journal.rows import find_stream_number
from decklog.log import Decklog
from decklog.plugins.bazinga_project import is_old_database, log_of, root_of
from decklog.plugins.importers.bazinga.mirror import Mirror
from decklog.plugins.legacy.bazinga.query import make_views
from decklog.stores.artifacts.states import InvestigationStatus

M = TypeVar("M", bound=Callable[..., Any])
MOST_ROWS = 1000
PROGRAM = "bazinga-db"
SHIPPED = "shipped"


class CallRefused(ValueError):
    """Refuses a call that can't be done as it was made. `details` go into its JSON form."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.details = details


class DatabaseInitError(Exception):
    """The database can't be opened or created."""


class MigrationLockError(DatabaseInitError):
    """Another process is migrating the database."""


class BazingaBase:
    """One open log, seen as a bazinga database."""

    def __init__(
        self,
        db_path: str | os.PathLike[str],
        quiet: bool = False,
        *,
        project_root: str | os.PathLike[str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.db_path = os.fspath(db_path)
        self.quiet = quiet
        self._project_root = None if project_root is None else os.fspath(project_root)
        self.log: Decklog
        self.log, self._mirror = open_log(self.db_path, clock)
        # Why the file for readers is behind the log, if it is.
        self.behind: str | None = None
        # Create or repair the file for readers; refuse a foreign file in its place before anything is written.
        try:
            self.follow()
        except BaseException:
            self._close()
            raise

    @property
    def project_root(self) -> str:
        """The folder that contains bazinga/artifacts."""
        if self._project_root is None:
            self._project_root = root_of(self.db_path)
        return self._project_root

    def expect_session(self, session_id: str) -> None:
        """Raise for a session that does not exist."""
        self.log.runs.get(session_id)

    def is_session(self, session_id: str) -> bool:
        """Return whether a session exists."""
        return self.log.db.read(lambda: find_stream_number(self.log.db, session_id)) is not None

    def follow(self) -> bool:
        """Update the file for readers; return whether it is current. A failure is stored, and the next call retries."""
        if self._mirror is None or self.log.db.is_in_transaction:
            return False
        try:
            self._mirror.follow()
        except Conflict as problem:
            raise DatabaseInitError(error_text(problem)) from problem
        except (DecklogError, OSError) as problem:
            why = error_text(problem) if isinstance(problem, DecklogError) else str(problem)
            self.behind = f"{self.db_path} is behind the log, which has everything: {why}"
            return False
        self.behind = None
        return True

    def number(self, stream: str, seq: int) -> int | None:
        """Return the id that readers know an entry by, or None if unknown. Without a mirror file it is the entry number."""
        if self._mirror is None:
            return seq
        return self._mirror.number_of(stream, seq) if self.follow() else None

    def is_redacted(self, entry: Entry) -> bool:
        """Return whether an entry was redacted, here or by the older system that it was imported from."""
        if entry.redacted or self._mirror is None:
            return entry.redacted
        number = self.number(entry.stream, entry.seq)
        return number is not None and self._mirror.is_redacted(number)

    def id_where(self, table: str, otherwise: int | None, **key: object) -> int | None:
        """Return the id by which readers know a table's row."""
        if self._mirror is None:
            return otherwise
        return self._mirror.id_where(table, **key) if self.follow() else None

    def close(self) -> None:
        try:
            self.follow()
        finally:
            self._close()

    def _close(self) -> None:
        if self._mirror is not None:
            self._mirror.close()
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_log(path: str, clock: Clock | None = None) -> tuple[Decklog, Mirror | None]:
    """Open the log at a path, or create it, with a file for readers if that is a separate file.

    Raise for an old bazinga database, and leave it unchanged.
    """
    log_path, for_readers = log_of(path)
    with ExitStack() as opened:
        try:
            log = Decklog.open(log_path, clock=clock)
            opened.callback(log.close)
            if log.db.engine != "sqlite":
                make_views(log.db)
            # A bazinga database always has a workflow; with a registered owner, only the owner loads one.
            if not log.db.read_only and log.db.read(lambda: log.db.one("select 1 from workflow_versions limit 1", {})) is None:
                with suppress(Denied):
                    log.workflow.load(by=PROGRAM)
        except OSError as problem:
            raise DatabaseInitError(f"{log_path} can't be opened: {problem.strerror or problem}") from problem
        except DecklogError as problem:
            raise DatabaseInitError(_explain_open_error(log_path, problem)) from problem
        opened.pop_all()
    return log, None if for_readers is None else Mirror(for_readers, log)


def _explain_open_error(path: str, problem: DecklogError) -> str:
    if isinstance(problem, NotADatabase) and is_old_database(path):
        take_over = f"decklog bazinga take-over {shlex.quote(root_of(path))}"
        return f"{path} is a database of bazinga-db itself, and was left as it is. Take its project over with: {take_over}"
    if isinstance(problem, Damaged):
        return f"{error_text(problem)} decklog recover takes what can be read into a new file."
    return error_text(problem)


def error_text(problem: DecklogError) -> str:
    """Format a Decklog error in bazinga's words."""
    facts = problem.details
    if isinstance(problem, NotFound):
        session = facts.get("stream") or (facts.get("id") if facts.get("table") == "runs" else None)
        if session is not None:
            return f"Session not found: {session}"
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message


def _marked(refusal: Callable[[str], dict[str, Any]]) -> Callable[[M], M]:
    def mark(method: M) -> M:
        @wraps(method)
        def call(db: BazingaBase, /, *args: Any, **kwargs: Any) -> Any:
            try:
                answer = method(db, *args, **kwargs)
            except DecklogError as problem:
                return refusal(error_text(problem))
            db.follow()
            return answer

        return cast("M", call)

    return mark


def _raise(why: str) -> NoReturn:
    raise CallRefused(why)


# Decorators for public methods: convert an error to a ValueError, or to `{"success": False, "error": …}`.
answers = _marked(_raise)
reports = _marked(lambda why: {"success": False, "error": why})


def check(problem: str | None) -> None:
    """Raise CallRefused if a validator found a problem."""
    if problem is not None:
        raise CallRefused(problem)


def check_group(group_id: str | None) -> None:
    """Raise CallRefused for an invalid group id; None means all groups."""
    if group_id is not None:
        check(validate_scope_global_or_group(group_id))


def one_of(name: str, value: object, allowed: Iterable[str | None]) -> None:
    """Raise CallRefused for a value that is not allowed; None among the allowed values makes it optional."""
    choices = tuple(allowed)
    if value not in choices:
        raise CallRefused(f"Invalid {name}: {value!r}. Must be one of: {', '.join(filter(None, choices))}")


def filled(name: str, value: object) -> str:
    """Raise CallRefused for an empty text."""
    if not isinstance(value, str) or not value.strip():
        raise CallRefused(f"{name} cannot be empty")
    return value


def given(value: str | None) -> str | None:
    """Return None for a blank text."""
    return value if value is not None and value.strip() else None


def moment(text: str) -> datetime:
    """Parse a time in bazinga's format or ISO 8601."""
    try:
        return from_text(text.replace(" ", "T", 1))
    except ValueError:
        raise CallRefused(f"{text!r} is not a time such as 2026-11-15 08:30:00") from None


def items_of(name: str, value: object, what: str) -> list[Any]:
    """Raise CallRefused for an empty list, or anything but a list."""
    if not isinstance(value, list) or not value:
        raise CallRefused(f"{name} must be a list of one or more {what}")
    return value


def json_text(value: object) -> str | None:
    """Format a JSON column's value as in bazinga's rows: as text, null for no value."""
    return None if value is None else json.dumps(value)


def from_json_text(name: str, text: str) -> Any:
    """Parse JSON; raise CallRefused with the position of an error."""
    try:
        return json.loads(text)
    except ValueError as problem:
        raise CallRefused(f"Invalid JSON in {name}: {problem}") from None


GROUP_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]+\Z")
RESERVED_GROUP_IDS = frozenset({"global", "session", "all", "default"})
VALID_SESSION_STATUSES = ("active", "completed", "failed", "paused", "cancelled")
VALID_INVESTIGATION_STATUSES = tuple(map(str, InvestigationStatus))
MAX_INVESTIGATION_ITERATION = 20
EXPECTED_SCHEMA_VERSION = 19
LONGEST_GROUP_ID = 64

STATE_TYPES = ("pm", "orchestrator", "group_status", "investigation")
MANDATORY_PHASES = ("completion", "understanding")


def validate_scope_global_or_group(group_id: object) -> str | None:
    """Check a group's id, or the word global."""
    if group_id is None:
        return "group_id cannot be None"
    if not isinstance(group_id, str):
        return f"group_id must be a string, got {type(group_id).__name__}"
    if not group_id.strip():
        return "group_id cannot be empty"
    if len(group_id) > LONGEST_GROUP_ID:
        return f"group_id too long (max {LONGEST_GROUP_ID} chars, got {len(group_id)})"
    if not GROUP_ID_PATTERN.match(group_id):
        return f"group_id must be alphanumeric with underscores/hyphens only, got {group_id!r}"
    return None


def validate_scope_group_only(group_id: object) -> str | None:
    """Check a group's id where the whole session is not allowed."""
    problem = validate_scope_global_or_group(group_id)
    if problem is None and str(group_id).lower() == "global":
        return "group_id cannot be 'global' here; name one task group"
    return problem


def validate_task_group_id(group_id: object) -> str | None:
    """Check the id of a task group, which must not be a word for several groups."""
    problem = validate_scope_global_or_group(group_id)
    if problem is None and str(group_id).lower() in RESERVED_GROUP_IDS:
        reserved = ", ".join(sorted(RESERVED_GROUP_IDS))
        return f"'{group_id}' is a reserved identifier and cannot name a task group (reserved: {reserved})"
    return problem


# The older name of the same check.
validate_group_id = validate_scope_global_or_group


def validate_investigation_inputs(group_id: object, iteration: object, status: object) -> str | None:
    """Check the key of an investigation's iteration."""
    problem = validate_scope_group_only(group_id)
    if problem is not None:
        return problem
    if type(iteration) is not int or not 1 <= iteration <= MAX_INVESTIGATION_ITERATION:
        return f"iteration must be an integer from 1 to {MAX_INVESTIGATION_ITERATION}, got {iteration!r}"
    if status not in VALID_INVESTIGATION_STATUSES:
        return f"status must be one of {', '.join(VALID_INVESTIGATION_STATUSES)}, got {status!r}"
    return None


def validate_complexity(complexity: object) -> str | None:
    """Check a group's complexity; None is allowed, True is no number."""
    if complexity is None:
        return None
    if type(complexity) is not int or not 1 <= complexity <= 10:
        return f"complexity must be an integer from 1 to 10, got {complexity!r}"
    return None
