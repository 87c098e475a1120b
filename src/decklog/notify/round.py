"""One round: find events to report and send the notices that are due."""

import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from decklog.core.errors import DecklogError, Invalid, NotFound
from decklog.core.plugins import PluginKind, load_plugin
from decklog.records.record import find_all

if TYPE_CHECKING:
    from decklog import Decklog, Notice, NotifyRule

# Older events are not reported.
NEWS = timedelta(days=7)
_MOST = 200


class NotifyEvent(NamedTuple):
    """An event to report once, identified by its key."""

    key: str
    what: str
    run_id: str | None = None


def _needs_attention(log: "Decklog", _since: datetime) -> "Iterator[NotifyEvent]":
    for item in find_all(log.overview.waiting, limit=_MOST):
        if item.is_decision:
            yield NotifyEvent(f"{item.kind}:{item.id}", f"{item.what}\n{item.command}", item.run_id)


def _budgets(log: "Decklog", _since: datetime) -> "Iterator[NotifyEvent]":
    today = log.clock.now().date().isoformat()
    for budget in log.overview.budgets():
        if budget.state != "ok":
            # Once in each of its periods.
            period = {"day": today, "week": f"{log.clock.now():%G-W%V}", "month": today[:7]}.get(budget.period, "")
            verb = "is spent, and stops" if budget.state == "stop" else f"has burned {budget.percent} %"
            text = f"The budget of {budget.whose} {verb}: {budget.said}"
            yield NotifyEvent(f"budget:{budget.id}:{period}:{budget.state}", text, budget.run_id)


def _ended(log: "Decklog", since: datetime, status: str) -> "Iterator[NotifyEvent]":
    for run in log.overview.ended(since, limit=_MOST):
        if run["status"] == status:
            what = f"{status.capitalize()}: {run['goal']}{_append_line(run['summary'])}"
            yield NotifyEvent(f"run:{run['id']}:{run['ended_at']}", what, run["id"])


def _failures(log: "Decklog", since: datetime) -> "Iterator[NotifyEvent]":
    yield from _ended(log, since, "failed")
    for task in log.overview.failed_tasks(since, limit=_MOST):
        text = f"All attempts failed: {task['title']}{_append_line(task['reason'])}"
        yield NotifyEvent(f"task:{task['id']}:{task['failures']}", text, task["run_id"])


def _done(log: "Decklog", since: datetime) -> "Iterator[NotifyEvent]":
    return _ended(log, since, "done")


def _append_line(text: str | None) -> str:
    return f"\n{text}" if text else ""


_EVENTS = {"needs_attention": _needs_attention, "budget": _budgets, "failure": _failures, "done": _done}


def events(log: "Decklog", event: str, since: datetime) -> "list[NotifyEvent]":
    """Return the events of one kind to report: newer than the rule, and at most a week old."""
    return list(_EVENTS[event](log, max(since, log.clock.now() - NEWS)))


COMMAND_SECONDS, WEBHOOK_SECONDS = 30, 10
_MOST_READ = 64 * 1024
# Prefix of a target that names a notifier plug-in.
_PLUGIN = "plugin:"
_RETRYABLE = frozenset({408, 425, 429})


class SendOutcome(NamedTuple):
    """The outcome of sending: `sent`, `failed` or `unknown`, and why."""

    state: str
    error: str | None = None
    may_retry: bool = True


def send(rule: "NotifyRule", notice: "Notice", log_name: str, at: int) -> SendOutcome:
    """Send a notice by its rule's channel; `at` is the time, in seconds, that a signature names."""
    message = _message(notice, log_name)
    body = json.dumps(message, ensure_ascii=False).encode()
    match rule.channel.value:
        case "command" if rule.target[0].startswith(_PLUGIN):
            return _send_by_plugin(rule.target[0].removeprefix(_PLUGIN), message, rule.target[1:])
        case "command":
            return _send_by_command(list(rule.target), notice, body)
        case "webhook":
            return _send_by_webhook(rule.target[0], rule.secret_env, notice, body, at)
    return _send_to_desktop(notice)


def _message(notice: "Notice", log_name: str) -> dict[str, Any]:
    shown = notice.as_dict()
    return {**{name: shown[name] for name in ("id", "event", "what", "run_id", "made_at")}, "log": log_name}


def _send_by_plugin(name: str, message: dict[str, Any], words: list[str]) -> SendOutcome:
    try:
        load_plugin(PluginKind.NOTIFIER, name)(message, words)
    except (DecklogError, OSError) as problem:
        return SendOutcome("failed", f"{name}: {problem}", may_retry=not isinstance(problem, DecklogError))
    return SendOutcome("sent")


def _send_by_command(words: list[str], notice: "Notice", body: bytes) -> SendOutcome:
    variables = {"DECKLOG_NOTICE": notice.id, "DECKLOG_NOTICE_EVENT": notice.event.value, "DECKLOG_NOTICE_WHAT": notice.what}
    try:
        done = subprocess.run(
            words,
            input=body,
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=COMMAND_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return SendOutcome("unknown", f"{words[0]} took longer than {COMMAND_SECONDS} s and was ended")
    except (OSError, ValueError) as problem:
        return SendOutcome("failed", f"{words[0]} could not be started: {problem}")
    if done.returncode == 0:
        return SendOutcome("sent")
    text = done.stderr[-500:].decode(errors="replace").strip()
    return SendOutcome("failed", f"{words[0]} ended with {done.returncode}{': ' + text if text else ''}")


def _send_by_webhook(address: str, secret_env: str | None, notice: "Notice", body: bytes, at: int) -> SendOutcome:
    headers = {"Content-Type": "application/json", "User-Agent": "decklog", "Decklog-Notice": notice.id}
    if secret_env is not None:
        secret = os.environ.get(secret_env)
        if not secret:
            return SendOutcome("failed", f"{secret_env} is not set here, so the webhook can't be signed")
        headers["Decklog-Signature"] = signature(secret, body, at)
    parts = urlsplit(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=WEBHOOK_SECONDS)
    try:
        connection.connect()
    except OSError as problem:
        connection.close()
        return SendOutcome("failed", f"{parts.hostname} was not reached: {problem}")
    return _post(connection, f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}", headers, body)


def _post(connection: HTTPConnection, path: str, headers: dict[str, str], body: bytes) -> SendOutcome:
    """Send one POST request. Redirects are not followed: they could send the notice anywhere."""
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read(_MOST_READ)
    except (OSError, HTTPException) as problem:
        # The request may have arrived.
        return SendOutcome("unknown", f"there was no answer: {problem or type(problem).__name__}")
    finally:
        connection.close()
    if 200 <= answer.status < 300:
        return SendOutcome("sent")
    may_retry = answer.status >= 500 or answer.status in _RETRYABLE
    return SendOutcome("failed", f"the answer was {answer.status} {answer.reason}", may_retry)


def signature(secret: str, body: bytes, at: int) -> str:
    """Sign a body with the time it is sent at: `t=SECONDS,v1=HEX`, the HMAC-SHA256 of `SECONDS.BODY`."""
    made = hmac.new(secret.encode(), f"{at}.".encode() + body, sha256).hexdigest()
    return f"t={at},v1={made}"


def _send_to_desktop(notice: "Notice") -> SendOutcome:
    title, text = f"Decklog: {notice.event.value.replace('_', ' ')}", notice.what
    if program := shutil.which("notify-send"):
        return _send_by_command([program, "--app-name=Decklog", "--", title, text], notice, b"")
    if sys.platform == "darwin" and (program := shutil.which("osascript")):
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        return _send_by_command([program, "-e", script, title, text], notice, b"")
    return SendOutcome("failed", "there is neither notify-send nor osascript here", may_retry=False)


_MOST_SENT = 100


@dataclass(frozen=True, kw_only=True)
class RoundSummary:
    """Result of a round."""

    made: int
    sent: int
    failed: int
    unknown: int
    notices: "list[Notice]"

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "notices": [notice.as_dict() for notice in self.notices]}


class Round:
    """Creates notices by the valid rules, and sends those that are due. Concurrent rounds send each notice once."""

    def __init__(self, log: "Decklog", *, log_name: str = "decklog") -> None:
        self._log = log
        self._name = log_name
        self._sender = f"{socket.gethostname()}:{os.getpid()}"

    def run(self) -> RoundSummary:
        """Create new notices, then send all that are due."""
        made = self.create_notices()
        results = self.send_due()
        states = [notice.state.value for notice in results]
        return RoundSummary(
            made=made,
            sent=states.count("sent"),
            failed=states.count("failed") + states.count("due"),
            unknown=states.count("unknown"),
            notices=results,
        )

    def create_notices(self) -> int:
        """Create the notices that are missing; return their number."""
        made = 0
        for rule in self._log.notices.counting_rules():
            found = {event.key: event for event in events(self._log, rule.event.value, rule.set_at)}
            for key in self._log.notices.unknown_to(rule.id, list(found)):
                notice = self._log.notices.note(rule.id, key, found[key].what, run_id=found[key].run_id)
                made += not notice.already
        return made

    def send_due(self) -> "list[Notice]":
        """Send the due notices one by one, and record each outcome."""
        results: list[Notice] = []
        while len(results) < _MOST_SENT and (notice := self._log.notices.take(self._sender)) is not None:
            outcome = self._send_by_rule(notice)
            results.append(
                self._log.notices.settle(
                    notice.id,
                    attempts=notice.attempts,
                    state=outcome.state,  # type: ignore[arg-type]
                    error=outcome.error,
                    may_retry=outcome.may_retry,
                )
            )
        return results

    def _send_by_rule(self, notice: "Notice") -> SendOutcome:
        rule = self._counting_rule(notice.rule_id)
        if rule is None:
            return SendOutcome("failed", "its rule was removed or is not signed", may_retry=False)
        return send(rule, notice, self._name, int(self._log.clock.now().timestamp()))

    def _counting_rule(self, rule_id: str) -> "NotifyRule | None":
        return next((rule for rule in self._log.notices.counting_rules() if rule.id == rule_id), None)

    def test(self, rule_id: str) -> "Notice":
        """Send a test notice by a rule now. It is stored like other notices."""
        if self._counting_rule(rule_id) is None:
            self._log.notices.rule(rule_id)
            raise Invalid(f"rule {rule_id} is not signed by the owner, so it sends nothing", field="rule_id")
        now = self._log.clock.now()
        made = self._log.notices.note(rule_id, f"test:{now.isoformat()}", "This is a test notice.")
        for notice in self.send_due():
            if notice.id == made.id:
                return notice
        raise NotFound(f"another process is sending notice {made.id}", hint=f"See: decklog notices show {made.id}", id=made.id)
