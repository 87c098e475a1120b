"""What every part of the compatibility layer stands on: the open log, refusals in bazinga's words, and its times."""

import os
from contextlib import suppress
from functools import wraps

from decklog.clock import from_text, to_text
from decklog.errors import Damaged, DecklogError, Denied, NotADatabase, NotFound
from decklog.stores.journal.rows import number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from typing import Any, Concatenate, ParamSpec, Self, TypeVar

    from decklog.app import Decklog
    from decklog.clock import Clock

    P = ParamSpec("P")
    R = TypeVar("R")
    D = TypeVar("D", bound="Desk")

MOST_ROWS = 1000
PROGRAM = "bazinga-db"
SHIPPED = "shipped"


class Refusal(ValueError):
    """A call that can't be done as it was made. `details` go into its JSON form."""

    def __init__(self, message: str, **details: "Any") -> None:
        super().__init__(message)
        self.details = details


class DatabaseInitError(Exception):
    """The database can't be opened or made."""


class MigrationLockError(DatabaseInitError):
    """Another process is bringing the database up to date."""


class Desk:
    """One open log, seen as a bazinga database."""

    def __init__(
        self,
        db_path: "str | os.PathLike[str]",
        quiet: bool = False,
        *,
        project_root: "str | os.PathLike[str] | None" = None,
        clock: "Clock | None" = None,
    ) -> None:
        self.db_path = os.fspath(db_path)
        self.quiet = quiet
        self._project_root = None if project_root is None else os.fspath(project_root)
        self.log: Decklog = open_log(self.db_path, clock)

    @property
    def project_root(self) -> str:
        """The folder that bazinga/artifacts is in."""
        if self._project_root is None:
            from decklog.compat.bazinga.places import root_of

            self._project_root = root_of(self.db_path)
        return self._project_root

    def expect_session(self, session_id: str) -> None:
        """Refuse a session that does not exist."""
        self.log.runs.get(session_id)

    def is_session(self, session_id: str) -> bool:
        """Say whether there is such a session."""
        return self.log.db.read(lambda: number_of(self.log.db, session_id)) is not None

    def close(self) -> None:
        self.log.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_log(path: str, clock: "Clock | None" = None) -> "Decklog":
    """Open the log, or make it; an old bazinga database is named as what it is, and left alone."""
    from decklog.app import Decklog
    from decklog.compat.bazinga import views

    try:
        log = Decklog.open(path, clock=clock)
        try:
            if views.make(log.db):
                _seed(log)
        except BaseException:
            log.close()
            raise
        return log
    except NotADatabase as problem:
        import shlex

        from decklog.compat.bazinga.places import is_old_database, root_of

        if is_old_database(path):
            raise DatabaseInitError(
                f"{path} is a database of bazinga-db itself, and was left as it is. "
                f"Take its project over with: decklog bazinga take-over {shlex.quote(root_of(path))}"
            ) from problem
        raise DatabaseInitError(told(problem)) from problem
    except Damaged as problem:
        raise DatabaseInitError(f"{told(problem)} decklog recover takes what can be read into a new file.") from problem
    except DecklogError as problem:
        raise DatabaseInitError(told(problem)) from problem
    except OSError as problem:
        raise DatabaseInitError(f"{path} can't be opened: {problem.strerror or problem}") from problem


def _seed(log: "Decklog") -> None:
    """Write the workflow in use down: bazinga has one in its tables from the start. Under a manager it is theirs to do."""
    if log.workflow.ready()["source"] == SHIPPED:
        with suppress(Denied):
            log.workflow.load(by=PROGRAM)


def told(problem: DecklogError) -> str:
    """Say an error of Decklog in bazinga's words."""
    facts = problem.details
    if isinstance(problem, NotFound):
        session = facts.get("stream") or (facts.get("id") if facts.get("table") == "runs" else None)
        if session is not None:
            return f"Session not found: {session}"
    return f"{problem.message} ({problem.hint})" if problem.hint else problem.message


def answers(method: "Callable[Concatenate[D, P], R]") -> "Callable[Concatenate[D, P], R]":
    """Mark a public method: what Decklog refuses, it refuses with a ValueError."""

    @wraps(method)
    def call(desk: "D", /, *args: "P.args", **kwargs: "P.kwargs") -> "R":
        try:
            return method(desk, *args, **kwargs)
        except DecklogError as problem:
            raise Refusal(told(problem)) from problem

    return call


def reports(method: "Callable[Concatenate[D, P], dict[str, Any]]") -> "Callable[Concatenate[D, P], dict[str, Any]]":
    """Mark a public method that gives a refusal by the log as `{"success": False, "error": …}`."""

    @wraps(method)
    def call(desk: "D", /, *args: "P.args", **kwargs: "P.kwargs") -> "dict[str, Any]":
        try:
            return method(desk, *args, **kwargs)
        except DecklogError as problem:
            return {"success": False, "error": told(problem)}

    return call


def check(problem: str | None) -> None:
    """Refuse when a validator found something."""
    if problem is not None:
        raise Refusal(problem)


def one_of(name: str, value: object, allowed: "tuple[str | None, ...]") -> None:
    """Refuse a word that is not one of those allowed; None among them means that it need not be given."""
    if value not in allowed:
        raise Refusal(f"Invalid {name}: {value!r}. Must be one of: {', '.join(filter(None, allowed))}")


def filled(name: str, value: object) -> str:
    """Refuse a text that says nothing."""
    if not isinstance(value, str) or not value.strip():
        raise Refusal(f"{name} cannot be empty")
    return value


def given(value: str | None) -> str | None:
    """Read a blank text as not given."""
    return value if value is not None and value.strip() else None


def stamp(moment: "datetime | None") -> str | None:
    """Write a time as bazinga does, in UTC, with microseconds."""
    return None if moment is None else to_text(moment)[:26].replace("T", " ")


def moment(text: str) -> "datetime":
    """Read a time as bazinga or ISO-8601 writes it."""
    try:
        return from_text(text.replace(" ", "T", 1))
    except ValueError:
        raise Refusal(f"{text!r} is not a time such as 2026-11-15 08:30:00") from None


def json_text(value: object) -> str | None:
    """Write a JSON column's value as bazinga's rows hold it: as text, null when there is none."""
    if value is None:
        return None
    import json

    return json.dumps(value)


def from_json_text(name: str, text: str) -> "Any":
    """Read JSON, or say where it breaks."""
    import json

    try:
        return json.loads(text)
    except ValueError as problem:
        raise Refusal(f"Invalid JSON in {name}: {problem}") from None
