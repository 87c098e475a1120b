"""What one running dashboard is made of: its log, its names, who is logged in, and what is told to open pages."""

import shlex
from dataclasses import dataclass, field
from typing import Any

from decklog.log import Decklog
from decklog.web.elsewhere import Password
from decklog.web.live import Feed
from decklog.web.names import Names
from decklog.web.now_and_then import NowAndThen
from decklog.web.sessions import BrowserSession, BrowserSessions
from decklog.web.verifying import Verifying

# What was added to runs that are over is looked for so often: to look at those that go on costs the same however many are over.
_WHOLE_SECONDS = 5.0


@dataclass(frozen=True)
class DashboardSite:
    """One dashboard. `key` is the manager's key file, which a passphrase unlocks at each decision."""

    log: Decklog
    name: str
    names: Names
    sessions: BrowserSessions
    feed: Feed
    key: str | None = None
    # What whoever comes from another machine logs in with.
    password: Password | None = None
    # When a search looks into every run for what is new.
    whole_searches: NowAndThen = field(default_factory=lambda: NowAndThen(_WHOLE_SECONDS))
    verifying: Verifying = field(default_factory=Verifying)

    @property
    def is_read_only(self) -> bool:
        return bool(self.log.db.read_only)


def command(*words: object) -> str:
    """Write what to type at a terminal: whatever somebody called a run or searched for is one word of it, and no command."""
    return shlex.join(("decklog", *(str(word) for word in words)))


# The parts of a page that an open one asks for, as its requests name them.
LIVE, STRIP = "live", "strip"
PARTS = (LIVE, STRIP)
# What anybody can make long by what they ask for is stopped after this.
PATIENCE_SECONDS = 0.3


@dataclass(frozen=True)
class SiteRequest:
    """What one request asks of a site: by whom, for which place, and with which words."""

    site: DashboardSite
    session: BrowserSession
    path: dict[str, str]
    query: dict[str, str]
    form: dict[str, str] = field(default_factory=dict)
    # Where the same is told as data.
    twin: str = ""
    # What an open page asks for: what may have changed, or that and the strip above its slider. Nothing where it is all of it.
    part: str = ""

    @property
    def is_part(self) -> bool:
        """Return whether an open page asks, which has what never changes, and adds new entries by itself."""
        return self.part in PARTS

    @property
    def log(self) -> Decklog:
        return self.site.log

    def number(self, name: str) -> int | None:
        """Return a whole number of the query; what is none counts as not given."""
        text = self.query.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None

    def word(self, name: str) -> str | None:
        return self.query.get(name) or None


@dataclass(frozen=True)
class PageView:
    """What a page answers: `data` is what its JSON form has, `shown` what its template takes beside it."""

    template: str
    title: str
    command: str
    data: Any
    shown: dict[str, Any] = field(default_factory=dict)
    next: str | None = None
    # Which place of the bar is marked, and how many decisions wait, where the page knows it anyway.
    place: str = ""
    decisions: int | None = None
    status: int = 200
    # Where to go instead, when what was asked for names one place.
    to: str | None = None
