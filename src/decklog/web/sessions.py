"""Login sessions. They are kept in memory only, and end with the server, at their expiry or at logout."""

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
# After this number of wrong passwords none is accepted for a while.
MOST_WRONG, PAUSE_SECONDS = 5, 60


# The way somebody logged in.
BY_LINK, BY_PASSWORD = "link", "password"
# Markers of browsers and systems in a User-Agent. Most browsers list others for compatibility, so the first match wins.
_PROGRAMS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrom": "Chrome", "Safari": "Safari", "curl": "curl"}
_MACHINES = {"Windows": "Windows", "Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Mac OS": "macOS", "Linux": "Linux"}


def describe_browser(agent: str) -> str:
    """Describe a User-Agent in plain words. It helps people recognize their browsers and proves nothing."""
    program = next((name for sign, name in _PROGRAMS.items() if sign in agent), "A browser")
    machine = next((name for sign, name in _MACHINES.items() if sign in agent), None)
    return f"{program} on {machine}" if machine else program


@dataclass
class BrowserSession:
    """One logged-in browser. `browser` is its own description, `uid` the user that runs it, if known."""

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
        """The session's name in the journal. It identifies the session and can't be used to log in."""
        return f"web:{sha256(self.id.encode()).hexdigest()[:8]}"

    def form_token(self, verb: str, record_id: str) -> str:
        """Build the token of a form for this session, verb and record."""
        return hmac.new(self.secret, f"{verb}\0{record_id}".encode(), sha256).hexdigest()

    def is_form_token(self, given: str, verb: str, record_id: str) -> bool:
        return hmac.compare_digest(given.encode(), self.form_token(verb, record_id).encode())

    def as_dict(self) -> dict[str, object]:
        """Return the public fields, without id and secret."""
        known = {"name": self.name, "how": self.how, "browser": self.browser, "has_page_open": self.streams > 0}
        return {**known, "came_at": to_text(self.came_at), "seen_at": to_text(self.seen_at)}


class AttemptLimiter:
    """Counter of wrong attempts. After too many, all attempts are refused for a while."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        self._seconds = seconds
        self._gate = Lock()
        self._wrong: list[float] = []

    def pause(self) -> float:
        """Return for how many seconds attempts are refused."""
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
    """All sessions, and the login links. Each link works once and for five minutes."""

    def __init__(
        self, seconds: Callable[[], float] = time.monotonic, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._seconds = seconds
        self._now = now
        self._gate = Lock()
        self._links: dict[str, float] = {}
        self._sessions: dict[str, BrowserSession] = {}
        # Separate counters, so that password guesses from other machines can't block the owner's decisions.
        self.proofs, self.passwords = AttemptLimiter(seconds), AttemptLimiter(seconds)

    def new_link(self) -> str:
        """Create the secret part of a login link. Only its digest is kept."""
        token = secrets.token_urlsafe(32)
        with self._gate:
            now = self._seconds()
            self._links = {digest: ends for digest, ends in self._links.items() if ends > now}
            self._links[_digest(token)] = now + LOGIN_SECONDS
        return token

    def log_in(self, token: str, agent: str = "", uid: int | None = None) -> BrowserSession | None:
        """Start a session with a link's secret, which then is used up. Return None for an unknown or expired secret."""
        with self._gate:
            now = self._seconds()
            if self._links.pop(_digest(token), now) <= now:
                return None
        return self.begin(BY_LINK, agent, uid)

    def begin(self, how: str, agent: str = "", uid: int | None = None) -> BrowserSession:
        """Start a session for an authenticated browser. `agent` is its User-Agent."""
        with self._gate:
            now, at = self._seconds(), self._now()
            browser = describe_browser(agent)
            session = BrowserSession(secrets.token_urlsafe(32), now + SESSION_SECONDS, at, at, how, browser, uid=uid)
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
        """Return whether a session is active."""
        return self._sessions.get(session.id) is session and session.ends > self._seconds()

    def log_out(self, session: BrowserSession) -> None:
        with self._gate:
            self._sessions.pop(session.id, None)

    def log_out_all(self) -> None:
        """End all sessions and invalidate all unused links."""
        with self._gate:
            self._sessions.clear()
            self._links.clear()

    def end(self, name: str) -> None:
        """End the session with a name, if it is active."""
        with self._gate:
            for session in [one for one in self._sessions.values() if one.name == name]:
                del self._sessions[session.id]

    def open(self) -> list[BrowserSession]:
        """List the active sessions, the most recently seen first."""
        now = self._seconds()
        with self._gate:
            known = [session for session in self._sessions.values() if session.ends > now]
        return sorted(known, key=lambda session: session.seen_at, reverse=True)


def build_cookie(session: BrowserSession, *, is_secure: bool = False) -> str:
    """Build the cookie of a session, bound to this host name and hidden from scripts and other sites."""
    way = "; Secure" if is_secure else ""
    return f"{COOKIE}={session.id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={SESSION_SECONDS}{way}"


NO_COOKIE = f"{COOKIE}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"


def _digest(token: str) -> str:
    return sha256(token.encode(errors="replace")).hexdigest()
