"""Send one notice by a command, a webhook or the desktop, with a timeout; report whether a retry makes sense."""

import hmac
import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from decklog.core.errors import DecklogError
from decklog.core.plugins import PluginKind, load_plugin

if TYPE_CHECKING:
    from typing import Any

    from decklog import Notice, NotifyRule

COMMAND_SECONDS, WEBHOOK_SECONDS = 30, 10
_MOST_READ = 64 * 1024
# Begins the target of a notifier plug-in.
_PLUGIN = "plugin:"
_RETRYABLE = frozenset({408, 425, 429})


class SendOutcome(NamedTuple):
    """What came of sending: `sent`, `failed` or `unknown`, and why."""

    state: str
    error: str | None = None
    may_retry: bool = True


def send(rule: "NotifyRule", notice: "Notice", log_name: str, at: int) -> SendOutcome:
    """Send a notice by its rule's channel; `at` is the time, in seconds, that a signature names."""
    message = _message(notice, log_name)
    body = json.dumps(message, ensure_ascii=False).encode()
    match rule.channel.value:
        case "command" if rule.target[0].startswith(_PLUGIN):
            return _by_plugin(rule.target[0].removeprefix(_PLUGIN), message, rule.target[1:])
        case "command":
            return _command(list(rule.target), notice, body)
        case "webhook":
            return _webhook(rule.target[0], rule.secret_env, notice, body, at)
    return _desktop(notice)


def _message(notice: "Notice", log_name: str) -> "dict[str, Any]":
    shown = notice.as_dict()
    return {**{name: shown[name] for name in ("id", "event", "what", "run_id", "made_at")}, "log": log_name}


def _by_plugin(name: str, message: "dict[str, Any]", words: list[str]) -> SendOutcome:
    try:
        load_plugin(PluginKind.NOTIFIER, name)(message, words)
    except (DecklogError, OSError) as problem:
        return SendOutcome("failed", f"{name}: {problem}", may_retry=not isinstance(problem, DecklogError))
    return SendOutcome("sent")


def _command(words: list[str], notice: "Notice", body: bytes) -> SendOutcome:
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
    said = done.stderr[-500:].decode(errors="replace").strip()
    return SendOutcome("failed", f"{words[0]} ended with {done.returncode}{': ' + said if said else ''}")


def _webhook(address: str, secret_env: str | None, notice: "Notice", body: bytes, at: int) -> SendOutcome:
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
    return _posted(connection, f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}", headers, body)


def _posted(connection: HTTPConnection, path: str, headers: dict[str, str], body: bytes) -> SendOutcome:
    """Send one POST request. Redirects are not followed: they could send the notice anywhere."""
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        answer.read(_MOST_READ)
    except (OSError, HTTPException) as problem:
        # The request may have arrived.
        return SendOutcome("unknown", f"no answer came: {problem or type(problem).__name__}")
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


def _desktop(notice: "Notice") -> SendOutcome:
    title, text = f"Decklog: {notice.event.value.replace('_', ' ')}", notice.what
    if program := shutil.which("notify-send"):
        return _command([program, "--app-name=Decklog", "--", title, text], notice, b"")
    if sys.platform == "darwin" and (program := shutil.which("osascript")):
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        return _command([program, "-e", script, title, text], notice, b"")
    return SendOutcome("failed", "there is neither notify-send nor osascript here", may_retry=False)
