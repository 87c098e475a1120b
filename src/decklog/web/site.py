"""The objects that all pages of the dashboard share: the site, a request, a page's view, and its errors."""

import shlex
from dataclasses import dataclass, field
from typing import Any, Protocol

from decklog import Task
from decklog.core import errors
from decklog.log import Decklog
from decklog.web.hosts import Names, Password
from decklog.web.live import ChangeFeed
from decklog.web.sessions import BrowserSession, BrowserSessions
from decklog.web.verifying import LogVerifier, Throttle

# How often a search indexes new entries of finished runs. Unfinished runs are always indexed, which is fast.
_WHOLE_SECONDS = 5.0


class MetricsToken(Protocol):
    """The token that a monitoring system sends for `/metrics`."""

    def matches_header(self, authorization: bytes) -> bool: ...


@dataclass(frozen=True)
class DashboardSite:
    """The dashboard of one log. `key` is the owner's key file; a passphrase unlocks it for each decision."""

    log: Decklog
    name: str
    names: Names
    sessions: BrowserSessions
    feed: ChangeFeed
    key: str | None = None
    # The password for logins from other machines.
    password: Password | None = None
    metrics_token: MetricsToken | None = None
    # Limits how often a search indexes new entries of all runs.
    full_searches: Throttle = field(default_factory=lambda: Throttle(_WHOLE_SECONDS))
    verifying: LogVerifier = field(default_factory=LogVerifier)

    @property
    def is_read_only(self) -> bool:
        return bool(self.log.db.read_only)


def command(*words: object) -> str:
    """Build a shell command. Run names and search words are quoted as single words."""
    return shlex.join(("decklog", *(str(word) for word in words)))


# Time limit for queries whose cost depends on the request.
QUERY_SECONDS = 0.3


@dataclass(frozen=True)
class SiteRequest:
    """One request to the dashboard: its session, path parameters, query and form."""

    site: DashboardSite
    session: BrowserSession
    path: dict[str, str]
    query: dict[str, str]
    form: dict[str, str] = field(default_factory=dict)
    # The address of the page's JSON form.
    json_url: str = ""

    @property
    def log(self) -> Decklog:
        return self.site.log

    def number(self, name: str) -> int | None:
        """Return a whole number from the query; None if it is missing or not a number."""
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None

    def word(self, name: str) -> str | None:
        return self.query.get(name) or None


@dataclass(frozen=True)
class PageView:
    """The content of a page: `data` for its JSON form, `shown` for additional variables of its template."""

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
    400: "Invalid request",
    403: "Not permitted",
    404: "Not found",
    409: "The record has changed",
    413: "Request too large",
    429: "Too many attempts",
    500: "Internal error",
    503: "The log is unavailable",
}


def http_status(problem: BaseException) -> int:
    return next(status for kind, status in STATUSES if isinstance(problem, kind))


def public_error(problem: BaseException) -> errors.DecklogError:
    """Return the error to show on a page. Internal errors are replaced, so that no path, SQL or setting is revealed."""
    if isinstance(problem, errors.DecklogError):
        if not isinstance(problem, errors.Unavailable) and not _is_database_error(problem):
            return problem
        shown = errors.Unavailable("the log is unreachable, busy or damaged", hint="In the terminal, run: decklog doctor")
        shown.code, shown.retryable = problem.code, problem.retryable
        return shown
    return errors.DecklogError("this is a bug in Decklog", hint="The terminal of decklog serve shows details.")


def _is_database_error(problem: errors.DecklogError) -> bool:
    """Return whether the message is from the database, so that it may name tables, columns and values."""
    return problem.__cause__ is not None and not isinstance(problem.__cause__, errors.DecklogError)


def error_envelope(problem: BaseException) -> dict[str, object]:
    """Return an error in the JSON envelope that all interfaces use."""
    return {"ok": False, "error": public_error(problem).as_dict(), "warnings": []}
