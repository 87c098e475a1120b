"""The state of one running dashboard: its log, host name, sessions and event feed."""

import shlex
from dataclasses import dataclass, field
from typing import Any, Protocol

from decklog.log import Decklog
from decklog.web.elsewhere import Password
from decklog.web.live import Feed
from decklog.web.names import Names
from decklog.web.sessions import BrowserSession, BrowserSessions
from decklog.web.verifying import NowAndThen, Verifying

# Finished runs are searched for new entries this often. The cost for unfinished runs does not depend on their number.
_WHOLE_SECONDS = 5.0


class MetricsToken(Protocol):
    """The token that a monitoring system shows for `/metrics`."""

    def is_shown_by(self, authorization: bytes) -> bool: ...


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


# The parts of a page that an open page can request.
LIVE, STRIP = "live", "strip"
PARTS = (LIVE, STRIP)
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
    # The part that an open page requests: what may have changed, or also the strip above its slider. Empty for the whole page.
    part: str = ""

    @property
    def is_part(self) -> bool:
        """Return whether an open page requests only what changes. It keeps the rest and adds new entries itself."""
        return self.part in PARTS

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
