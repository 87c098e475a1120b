"""Notices: messages to people by the owner's rules, each sent once."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal

from decklog.core.errors import Invalid
from decklog.db.where import Where, parse_enum, placed
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores.base import Store


class NoticeEvent(StrEnum):
    """The events that a rule is about."""

    NEEDS_ATTENTION = "needs_attention"
    BUDGET = "budget"
    FAILURE = "failure"
    DONE = "done"


NoticeEventLike = NoticeEvent | Literal["needs_attention", "budget", "failure", "done"]


class NoticeChannel(StrEnum):
    COMMAND = "command"
    WEBHOOK = "webhook"
    DESKTOP = "desktop"


NoticeChannelLike = NoticeChannel | Literal["command", "webhook", "desktop"]


class NoticeState(StrEnum):
    DUE = "due"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"


NoticeStateLike = NoticeState | Literal["due", "sending", "sent", "failed", "unknown"]


@dataclass(frozen=True, kw_only=True)
class NotifyRule(Record):
    """Reports one kind of event: by a command (its words), a webhook (its address) or on the desktop."""

    table = "notify_rules"
    home = "@desk"
    is_managed = True
    is_guarded = True

    id: str
    event: NoticeEvent
    channel: NoticeChannel
    set_at: datetime
    target: list[str] = field(default_factory=list)
    secret_env: str | None = None
    proof: str | None = None


@dataclass(frozen=True, kw_only=True)
class Notice(Record):
    """One event reported by one rule. `key` names the event: it has one notice for ever."""

    table = "notices"
    home = "@desk"

    id: str
    rule_id: str
    key: str
    event: NoticeEvent
    what: str
    state: NoticeState
    due_at: datetime
    made_at: datetime
    run_id: str | None = None
    attempts: int = 0
    sender: str | None = None
    taken_at: datetime | None = None
    error: str | None = None
    settled_at: datetime | None = None


MOST_ATTEMPTS = 5
# Retry after 30 seconds, then 2, 8 and 30 minutes.
_FIRST_WAIT, _GROWTH = timedelta(seconds=30), 4
# Sending has a much shorter time limit, so a process that took a notice longer ago is dead.
_LONGEST_SENDING = timedelta(minutes=5)

# The condition of the index.
_UNSENT = "(state = 'due' or state = 'sending')"


class Notices(Store):
    """Keeps notification rules and the notices they sent."""

    records = (NotifyRule, Notice)

    @writes(owner_only=True)
    def add_rule(
        self,
        event: NoticeEventLike,
        channel: NoticeChannelLike,
        *,
        target: list[str] | None = None,
        secret_env: str | None = None,
    ) -> NotifyRule:
        """Add a rule that reports when something needs a person, a budget warns or stops, work fails, or a run is done.

        The target of a command is its words, which no shell reads; that of a webhook its address: https, or http on this machine.
        A webhook is signed with the secret that the environment variable `secret_env` holds when it is sent.
        """
        kind = parse_enum(NoticeChannel, channel, "channel")
        words = _normalize_target(kind, target or [])
        if secret_env is not None and kind is not NoticeChannel.WEBHOOK:
            raise Invalid("only a webhook is signed", field="secret_env")
        if secret_env is not None and not secret_env.replace("_", "a").isalnum():
            raise Invalid("secret_env is the name of an environment variable", field="secret_env")
        return self._add(
            NotifyRule,
            id=self._ids.new("rule"),
            event=parse_enum(NoticeEvent, event, "event"),
            channel=kind,
            target=words,
            secret_env=secret_env,
            set_at=self._now(),
            proof=self._nonce(),
        )

    @writes(owner_only=True)
    def remove_rule(self, rule_id: str) -> NotifyRule:
        """Remove a rule."""
        return self._remove_one(NotifyRule, rule_id)

    @reads
    def rules(self) -> list[NotifyRule]:
        """List the rules, oldest first."""
        return self._select(NotifyRule, "select * from notify_rules order by set_at, id")

    @reads
    def rule(self, rule_id: str) -> NotifyRule:
        """Get a rule."""
        return self._fetch(NotifyRule, rule_id)

    @reads
    def counting_rules(self) -> list[NotifyRule]:
        """List the rules that count: where an owner is bound, those that the owner proved."""
        return [rule for rule in self.rules() if self._proofs().is_decision_valid(NotifyRule, rule.id)]

    @reads
    def get(self, notice_id: str) -> Notice:
        """Get a notice."""
        return self._fetch(Notice, notice_id)

    @reads
    def find(
        self,
        *,
        state: NoticeStateLike | None = None,
        rule_id: str | None = None,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Notice]:
        """List notices, newest first."""
        where = Where(Notice, state=state, rule_id=rule_id)
        return self._page(Notice, where, order=("made_at", "id"), limit=limit, after=after, descending=True)

    @reads
    def unknown_to(self, rule_id: str, keys: list[str]) -> list[str]:
        """Pick the keys of which a rule has no notice yet."""
        if not keys:
            return []
        marks, named = placed(keys)
        bound, _ = self._db.values.bind({"rule_id": rule_id, **named})
        sql = f"select key from notices where rule_id = :rule_id and key in ({marks})"
        known = {row[0] for row in self._db.rows(sql, bound)[1]}
        return [key for key in dict.fromkeys(keys) if key not in known]

    @writes
    def note(self, rule_id: str, key: str, what: str, *, run_id: str | None = None) -> Notice:
        """Create the notice of an event by a rule; an existing one is returned unchanged."""
        rule, now = self._fetch(NotifyRule, rule_id), self._now()
        return self._find_or_add(
            lambda: self._seek_by(Notice, rule_id=rule_id, key=key),
            lambda: self._add(
                Notice,
                id=self._ids.new("note"),
                rule_id=rule_id,
                key=key,
                event=rule.event,
                what=what,
                run_id=run_id,
                state=NoticeState.DUE,
                due_at=now,
                made_at=now,
            ),
        )

    @writes
    def take(self, sender: str) -> Notice | None:
        """Take the next due notice to send it, or null. A notice that was taken long ago gets an unknown outcome."""
        self._doubt()
        where = Where(Notice)
        where.add(f"{_UNSENT} and state = 'due' and due_at <= :now", now=self._now())
        changes = {"state": "sending", "sender": sender, "taken_at": self._now(), "error": None}
        how: dict[str, Any] = {"condition": "state = 'due'", "adding": {"attempts": 1}, "note": "taken"}
        # If two senders find the same notice, the second update matches no row.
        due = self._list(Notice, where, order="due_at, id", limit=20)
        return next((taken for notice in due if (taken := self._try_update(Notice, notice.id, changes, **how)) is not None), None)

    def _doubt(self) -> None:
        where = Where(Notice)
        where.add(f"{_UNSENT} and state = 'sending' and taken_at < :before", before=self._now() - _LONGEST_SENDING)
        for notice in self._list(Notice, where, order="id"):
            self._settled(notice.id, notice.attempts, NoticeState.UNKNOWN, f"{notice.sender} took it and was not heard of again")

    @writes
    def settle(
        self, notice_id: str, *, attempts: int, state: NoticeStateLike, error: str | None = None, may_retry: bool = True
    ) -> Notice:
        """Record the outcome of sending a notice: sent, failed, or unknown; a failed one is retried, five times in all.

        `attempts` is how many its sender saw: one that is not its sender's any more is left as it is.
        """
        came = parse_enum(NoticeState, state, "state")
        if came in (NoticeState.DUE, NoticeState.SENDING):
            raise Invalid("what was sent is sent, failed or unknown", field="state")
        if came is NoticeState.FAILED and may_retry and attempts < MOST_ATTEMPTS:
            wait = _FIRST_WAIT * _GROWTH ** max(0, attempts - 1)
            return self._settled(notice_id, attempts, NoticeState.DUE, error, due_at=self._now() + wait)
        return self._settled(notice_id, attempts, came, error)

    def _settled(
        self, notice_id: str, attempts: int, state: NoticeState, error: str | None, due_at: datetime | None = None
    ) -> Notice:
        changes: dict[str, Any] = {"state": state, "sender": None, "error": error}
        changes |= {"settled_at": self._now()} if due_at is None else {"settled_at": None, "due_at": due_at}
        changed = self._try_update(
            Notice,
            notice_id,
            changes,
            condition="state = 'sending' and attempts = :attempts",
            note=state.value if error is None else f"{state}: {error}",
            attempts=attempts,
        )
        return changed if changed is not None else self._fetch(Notice, notice_id).mark_already()

    @writes
    def retry(self, notice_id: str) -> Notice:
        """Send a notice again that failed or has an unknown outcome; it may arrive twice, under the same id."""
        return self._update(
            Notice,
            notice_id,
            {"state": "due", "due_at": self._now(), "attempts": 0, "settled_at": None},
            condition="(state = 'failed' or state = 'unknown')",
            note="to be sent again",
        )


_LONGEST_TARGET = 4096


def _normalize_target(channel: NoticeChannel, words: list[str]) -> list[str]:
    if not isinstance(words, list) or not all(isinstance(word, str) and "\x00" not in word for word in words):
        raise Invalid("a target is a list of words", field="target")
    if sum(map(len, words)) > _LONGEST_TARGET:
        raise Invalid(f"a target has at most {_LONGEST_TARGET} characters", field="target")
    if channel is NoticeChannel.DESKTOP and words:
        raise Invalid("the desktop needs no target", field="target")
    if channel is NoticeChannel.COMMAND and not (words and words[0].strip()):
        raise Invalid("the target of a command is its words, the program first", field="target")
    if channel is NoticeChannel.WEBHOOK:
        _check_address(words)
    return words


def _check_address(words: list[str]) -> None:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(words[0]) if len(words) == 1 else None
        host = parts.hostname if parts else None
        is_here = host in ("localhost", "127.0.0.1", "::1")
        _ = parts.port if parts else None
    except ValueError:
        parts, host, is_here = None, None, False
    if parts is None or not host or not (parts.scheme == "https" or (parts.scheme == "http" and is_here)):
        raise Invalid("the target of a webhook is one address: https://…, or http:// on this machine", field="target")
    if parts.username is not None or parts.password is not None:
        raise Invalid("an address with a password in it would be kept in the log; sign with secret_env", field="target")
