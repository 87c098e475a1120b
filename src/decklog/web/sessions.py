"""Who is logged in. Sessions are kept in memory alone: they end with the server, after a time, or when somebody logs out."""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from threading import Lock

from decklog.core.clock import to_text

LOGIN_SECONDS = 5 * 60
SESSION_SECONDS = 12 * 60 * 60
COOKIE = "decklog"
MOST_SESSIONS = 200
# So many wrong proofs, and nobody decides anything for a while.
MOST_WRONG, PAUSE_SECONDS = 5, 60


# How somebody came in.
BY_LINK, BY_PASSWORD = "link", "password"
# What a browser calls itself, and what it runs on. Most name others too, that they want to be taken for: the first found counts.
_PROGRAMS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrom": "Chrome", "Safari": "Safari", "curl": "curl"}
_MACHINES = {"Windows": "Windows", "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Mac OS": "macOS", "Linux": "Linux"}


def browser_of(agent: str) -> str:
    """Say in plain words what a browser says of itself: enough to tell one's own from another, and nothing to be sure of."""
    program = next((name for sign, name in _PROGRAMS.items() if sign in agent), "A browser")
    machine = next((name for sign, name in _MACHINES.items() if sign in agent), None)
    return f"{program} on {machine}" if machine else program


@dataclass
class BrowserSession:
    """One browser that logged in; `browser` is what it says it is, `uid` the user whose program it is, where known."""

    id: str
    ends: float
    came_at: datetime
    seen_at: datetime
    how: str = BY_LINK
    browser: str = "A browser"
    streams: int = 0
    uid: int | None = None
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    @property
    def name(self) -> str:
        """What the journal calls it: enough to tell sessions apart, and no use to whoever reads it."""
        return f"web:{sha256(self.id.encode()).hexdigest()[:8]}"

    def form_token(self, verb: str, record_id: str) -> str:
        """Make the token of one form: of this session, this verb and this record."""
        return hmac.new(self.secret, f"{verb}\0{record_id}".encode(), sha256).hexdigest()

    def is_form_token(self, given: str, verb: str, record_id: str) -> bool:
        return hmac.compare_digest(given.encode(), self.form_token(verb, record_id).encode())

    def as_dict(self) -> dict[str, object]:
        """What may be told of it: neither its id nor its secret."""
        known = {"name": self.name, "how": self.how, "browser": self.browser, "has_page_open": self.streams > 0}
        return {**known, "came_at": to_text(self.came_at), "seen_at": to_text(self.seen_at)}


class Guesses:
    """Counts what was wrong; after too much of it nothing is taken for a while, right or wrong."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._gate = Lock()
        self._wrong: list[float] = []

    def pause(self) -> float:
        """Say for how many seconds nothing is taken."""
        with self._gate:
            now = self._seconds()
            self._wrong = [at for at in self._wrong if at > now - PAUSE_SECONDS]
            return self._wrong[-1] + PAUSE_SECONDS - now if len(self._wrong) >= MOST_WRONG else 0.0

    def count_wrong(self) -> None:
        with self._gate:
            self._wrong.append(self._seconds())

    def forget_wrong(self) -> None:
        with self._gate:
            self._wrong.clear()


class BrowserSessions:
    """Gives out login links, each good for one browser and five minutes, and knows who came by one."""

    def __init__(
        self, seconds: Callable[[], float] = time.monotonic, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._seconds = seconds
        self._now = now
        self._gate = Lock()
        self._links: dict[str, float] = {}
        self._sessions: dict[str, BrowserSession] = {}
        # Who guesses a password from elsewhere must not keep the manager from deciding.
        self.proofs, self.passwords = Guesses(seconds), Guesses(seconds)

    def new_link(self) -> str:
        """Make the secret part of a login link. Only its digest is kept."""
        token = secrets.token_urlsafe(32)
        with self._gate:
            now = self._seconds()
            self._links = {digest: ends for digest, ends in self._links.items() if ends > now}
            self._links[_digest(token)] = now + LOGIN_SECONDS
        return token

    def log_in(self, token: str, agent: str = "", uid: int | None = None) -> BrowserSession | None:
        """Begin a session by a link's secret part, which is used up by that; None when it is none, or no longer one."""
        with self._gate:
            now = self._seconds()
            if self._links.pop(_digest(token), now) <= now:
                return None
        return self.begin(BY_LINK, agent, uid)

    def begin(self, how: str, agent: str = "", uid: int | None = None) -> BrowserSession:
        """Begin a session of whoever has proven to be welcome; `agent` is what the browser says of itself."""
        with self._gate:
            now, at = self._seconds(), self._now()
            session = BrowserSession(secrets.token_urlsafe(32), now + SESSION_SECONDS, at, at, how, browser_of(agent), uid=uid)
            known = sorted(self._sessions.values(), key=lambda one: one.ends)
            for oldest in known[: max(0, len(known) + 1 - MOST_SESSIONS)]:
                del self._sessions[oldest.id]
            self._sessions[session.id] = session
            return session

    def known(self, cookies: str | None, uid: int | None = None) -> BrowserSession | None:
        """Find the unexpired session that a request's cookies name. Another user's program can't use it."""
        now = self._seconds()
        for part in (cookies or "").split(";"):
            name, _, value = part.strip().partition("=")
            session = self._sessions.get(value) if name == COOKIE else None
            if session is not None and session.ends > now and session.uid == uid:
                session.seen_at = self._now()
                return session
        return None

    def has(self, session: BrowserSession) -> bool:
        """Return whether a session goes on."""
        return self._sessions.get(session.id) is session and session.ends > self._seconds()

    def log_out(self, session: BrowserSession) -> None:
        with self._gate:
            self._sessions.pop(session.id, None)

    def log_out_all(self) -> None:
        """End every session, and every link that nobody followed."""
        with self._gate:
            self._sessions.clear()
            self._links.clear()

    def end(self, name: str) -> None:
        """End the session of a name; one that is over already is over."""
        with self._gate:
            for session in [one for one in self._sessions.values() if one.name == name]:
                del self._sessions[session.id]

    def open(self) -> list[BrowserSession]:
        """List who is logged in, whoever was seen last first."""
        now = self._seconds()
        with self._gate:
            known = [session for session in self._sessions.values() if session.ends > now]
        return sorted(known, key=lambda session: session.seen_at, reverse=True)


def cookie_of(session: BrowserSession, *, is_secure: bool = False) -> str:
    """Write the cookie of a session: of this name alone, out of reach of scripts and of requests from other sites."""
    way = "; Secure" if is_secure else ""
    return f"{COOKIE}={session.id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{way}"


NO_COOKIE = f"{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"


def _digest(token: str) -> str:
    return sha256(token.encode(errors="replace")).hexdigest()
