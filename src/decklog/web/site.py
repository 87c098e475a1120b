"""The dashboard's log, sessions and requests, and the answers of its pages."""

import shlex
from dataclasses import dataclass, field
from typing import Any, Protocol

from decklog import Task
from decklog.core import errors
from decklog.log import Decklog
from decklog.web.hosts import Names, Password
from decklog.web.live import Feed
from decklog.web.sessions import BrowserSession, BrowserSessions
from decklog.web.verifying import NowAndThen, Verifying

# Finished runs are searched for new entries this often. The cost for unfinished runs does not depend on their number.
_WHOLE_SECONDS = 5.0


class MetricsToken(Protocol):
    """The token that a monitoring system shows for `/metrics`."""

    def matches_header(self, authorization: bytes) -> bool: ...


@dataclass(frozen=True)
class DashboardSite:
    """One dashboard. `key` is the owner's key file, which a passphrase unlocks at each decision."""

    log: Decklog
    name: str
    names: Names
    sessions: BrowserSessions
    feed: Feed
    key: str | None = None
    # The password for logins from other machines.
    password: Password | None = None
    metrics_token: MetricsToken | None = None
    # When a search indexes new entries of all runs.
    whole_searches: NowAndThen = field(default_factory=lambda: NowAndThen(_WHOLE_SECONDS))
    verifying: Verifying = field(default_factory=Verifying)

    @property
    def is_read_only(self) -> bool:
        return bool(self.log.db.read_only)


def command(*words: object) -> str:
    """Build a shell command. Run names and search words are quoted as single words."""
    return shlex.join(("decklog", *(str(word) for word in words)))


# Time limit for work whose size depends on the request.
PATIENCE_SECONDS = 0.3


@dataclass(frozen=True)
class SiteRequest:
    """One request to the dashboard: its session, path parameters, query and form."""

    site: DashboardSite
    session: BrowserSession
    path: dict[str, str]
    query: dict[str, str]
    form: dict[str, str] = field(default_factory=dict)
    # The address of the page's JSON form.
    twin: str = ""

    @property
    def log(self) -> Decklog:
        return self.site.log

    def number(self, name: str) -> int | None:
        """Return a whole number of the query; None if it is missing or no number."""
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None

    def word(self, name: str) -> str | None:
        return self.query.get(name) or None


@dataclass(frozen=True)
class PageView:
    """The answer of a page: `data` is its JSON form, `shown` the additional variables of its template."""

    template: str
    title: str
    command: str
    data: Any
    shown: dict[str, Any] = field(default_factory=dict)
    next: str | None = None
    # The highlighted entry of the navigation bar, and the number of open decisions if the page knows it.
    place: str = ""
    decisions: int | None = None
    status: int = 200
    # The address to redirect to, if the request matches exactly one page.
    to: str | None = None


def is_lapsed(request: SiteRequest, task: Task) -> bool:
    """Return whether a running task's lease has expired."""
    until = task.leased_until
    return task.state.value == "running" and until is not None and until < request.log.clock.now()


# Errors


# The first matching class wins.
STATUSES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.TooLarge, 413),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.Denied, 403),
    (errors.Invalid, 400),
    (errors.Unavailable, 503),
    (BaseException, 500),
)
TITLES = {
    400: "That can't be used as it is",
    403: "That is not permitted",
    404: "There is no such thing here",
    409: "That is no longer so",
    413: "That is too large",
    429: "Wait a moment",
    500: "Something went wrong",
    503: "The log can't be read just now",
}


def status_of(problem: BaseException) -> int:
    return next(status for kind, status in STATUSES if isinstance(problem, kind))


def visible_error(problem: BaseException) -> errors.DecklogError:
    """Return the error that a page may show. Internal errors are replaced, so that no path, SQL or setting is revealed."""
    if isinstance(problem, errors.DecklogError) and not isinstance(problem, errors.Unavailable) and not _is_of_engine(problem):
        return problem
    if isinstance(problem, errors.DecklogError):
        shown = errors.Unavailable("the log is out of reach, busy or damaged", hint="At the terminal: decklog doctor")
        shown.code, shown.retryable = problem.code, problem.retryable
        return shown
    return errors.DecklogError("this is a fault in Decklog itself", hint="The terminal where it was started shows more.")


def _is_of_engine(problem: errors.DecklogError) -> bool:
    """Return whether the message is from the database; it may name tables, columns and values."""
    return problem.__cause__ is not None and not isinstance(problem.__cause__, errors.DecklogError)


def failure(problem: BaseException) -> dict[str, object]:
    """Return an error in the JSON envelope that all interfaces use."""
    return {"ok": False, "error": visible_error(problem).as_dict(), "warnings": []}
