"""Notices are sent once, by a command or a webhook."""

import hmac
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Invalid, ManualClock, NotifyRule, Unproven
from decklog.notify import Round
from tests.conftest import on_both
from tests.stores.approvals.trust.trust_desk import make_keys
from tests.stores.claiming import claimed

SECRET = "not a secret at all"


class Hook:
    """A local receiver that records requests and answers with a set status."""

    def __init__(self) -> None:
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        self.kills: int | None = None
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.requests.append((dict(self.headers.items()), body))
                if hook.kills is not None:
                    os.kill(hook.kills, signal.SIGKILL)
                    hook.kills = None
                if hook.status == 0:
                    self.connection.close()
                    return
                self.send_response(hook.status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook?x=1"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def subjects(self) -> list[str]:
        return [json.loads(body)["what"].splitlines()[0] for _, body in self.requests]


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()


def rule(log: Decklog, hook: Hook, event: str = "needs_attention", **more: Any) -> NotifyRule:
    return log.notices.add_rule(event, "webhook", target=[hook.address], **more)


def test_request_for_a_person_is_notified_once(log: Decklog, run_id: str, hook: Hook) -> None:
    rule(log, hook)
    log.approvals.ask(run_id, "Push?", by="ada", about="x")
    first, second = Round(log).run(), Round(log).run()
    assert (first.made, first.sent, second.made, second.sent) == (1, 1, 0, 0)
    assert hook.subjects == ["Push?"]
    assert log.journal.verify().ok


def test_a_webhook_is_signed_and_named(
    log: Decklog, run_id: str, hook: Hook, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule(log, hook, secret_env="HOOK_SECRET")
    log.approvals.ask(run_id, "Push?", by="ada", about="x")
    assert Round(log).run().failed == 1
    assert hook.requests == []
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    [notice] = log.notices.find()
    assert "HOOK_SECRET is not set" in str(notice.error)
    clock.advance(minutes=1)
    assert Round(log).run().sent == 1
    [(headers, body)] = hook.requests
    at, _, signature = headers["Decklog-Signature"].removeprefix("t=").partition(",v1=")
    assert hmac.compare_digest(signature, hmac.new(SECRET.encode(), at.encode() + b"." + body, sha256).hexdigest())
    assert headers["Decklog-Notice"] == notice.id
    assert int(at) == int(log.clock.now().timestamp())


def test_failed_notice_is_retried_five_times_with_backoff(log: Decklog, run_id: str, hook: Hook, clock: ManualClock) -> None:
    rule(log, hook)
    log.approvals.ask(run_id, "Push?", by="ada", about="x")
    hook.status = 503
    assert Round(log).run().failed == 1
    for wait in (30, 120, 480, 1920):
        clock.advance(seconds=wait - 1)
        assert Round(log).run().notices == []
        clock.advance(seconds=1)
        assert Round(log).run().failed == 1
    [notice] = log.notices.find()
    assert (notice.state, notice.attempts) == ("failed", 5)
    clock.advance(days=1)
    assert Round(log).run().notices == []
    hook.status = 200
    log.notices.retry(notice.id)
    assert Round(log).run().sent == 1


def test_a_refusal_and_a_redirect_are_not_tried_again(log: Decklog, run_id: str, hook: Hook, clock: ManualClock) -> None:
    rule(log, hook)
    for status in (400, 302):
        hook.status = status
        log.approvals.ask(run_id, f"Push {status}?", by="ada", about=str(status))
        assert [notice.state.value for notice in Round(log).run().notices] == ["failed"]
    clock.advance(days=1)
    assert Round(log).run().notices == []
    assert len(hook.requests) == 2


def test_notice_without_response_is_unknown_and_not_sent_again(log: Decklog, run_id: str, hook: Hook, clock: ManualClock) -> None:
    rule(log, hook)
    log.approvals.ask(run_id, "Push?", by="ada", about="x")
    hook.status = 0
    assert Round(log).run().unknown == 1
    clock.advance(days=1)
    assert Round(log).run().notices == []
    assert len(hook.requests) == 1


def test_a_sender_that_was_killed_leaves_an_unknown_outcome(log: Decklog, run_id: str, hook: Hook, clock: ManualClock) -> None:
    rule(log, hook)
    log.approvals.ask(run_id, "Push?", by="ada", about="x")
    Round(log).create_notices()
    notice = log.notices.take("elsewhere:1")
    assert notice is not None
    assert Round(log).run().notices == []
    clock.advance(minutes=6)
    assert Round(log).run().notices == []
    current = log.notices.get(notice.id)
    assert current.state == "unknown"
    assert "elsewhere:1 took it" in str(current.error)
    late = log.notices.settle(notice.id, attempts=notice.attempts, state="sent")
    assert (late.state, late.already) == ("unknown", True)


@on_both
def test_concurrent_senders_send_each_notice_once(log: Decklog, target: str, run_id: str, hook: Hook, clock: ManualClock) -> None:
    rule(log, hook)
    for number in range(6):
        log.approvals.ask(run_id, f"Push {number}?", by="ada", about=f"{number}")
    start = threading.Barrier(3)

    def send() -> None:
        with Decklog.open(target, clock=clock) as other:
            start.wait(10)
            Round(other).run()

    threads = [threading.Thread(target=send) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(hook.subjects) == [f"Push {number}?" for number in range(6)]


@pytest.mark.slow
@on_both
def test_killed_sender_sends_nothing_twice(log: Decklog, target: str, run_id: str, hook: Hook, clock: ManualClock) -> None:
    rule(log, hook)
    for number in range(3):
        log.approvals.ask(run_id, f"Push {number}?", by="ada", about=f"{number}")
    gate, opener = os.pipe()
    sender = os.fork()
    if sender == 0:
        os.read(gate, 1)
        with Decklog.open(target, clock=clock) as other:
            Round(other).run()
        os._exit(1)
    hook.kills = sender
    os.write(opener, b"x")
    assert os.waitstatus_to_exitcode(os.waitpid(sender, 0)[1]) == -signal.SIGKILL
    os.close(gate)
    os.close(opener)
    assert Round(log).run().sent == 2
    clock.advance(minutes=6)
    assert Round(log).run().notices == []
    assert sorted(hook.subjects) == [f"Push {number}?" for number in range(3)]
    assert sorted(notice.state.value for notice in log.notices.find()) == ["sent", "sent", "unknown"]
    assert log.journal.verify().ok


def fail(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "Change the lexer", max_attempts=1)
    claim = claimed(log, run_id, worker="ada")
    claim.fail("no module lark")


def spend(log: Decklog, run_id: str) -> None:
    log.budgets.set("run", scope_id=run_id, limit_microdollars=100)
    log.ledger.charge("m", cost_microdollars=85, run_id=run_id)


EVENTS: dict[str, tuple[str, Callable[[Decklog, str], object], str]] = {
    "done": ("done", lambda log, run_id: log.runs.finish(run_id, summary="fast"), "Done: Make the parser faster"),
    "failed run": ("failure", lambda log, run_id: log.runs.finish(run_id, status="failed"), "Failed: Make the parser faster"),
    "failed task": ("failure", fail, "All attempts failed: Change the lexer"),
    "budget": ("budget", spend, "The budget of run run_1 has burned 85 %: $0.000085 of $0.0001 in all"),
}


@on_both
@pytest.mark.parametrize("name", EVENTS)
def test_every_kind_of_event_is_notified_once(log: Decklog, run_id: str, hook: Hook, clock: ManualClock, name: str) -> None:
    event, happen, subject = EVENTS[name]
    log.runs.start("long ago", run_id="old")
    log.runs.finish("old")
    clock.advance(seconds=1)
    for kind in ("needs_attention", "budget", "failure", "done"):
        rule(log, hook, kind)
    happen(log, run_id)
    Round(log).run()
    Round(log).run()
    assert hook.subjects == [subject]
    assert json.loads(hook.requests[0][1])["event"] == event


def test_a_command_gets_the_notice_and_no_shell_reads_it(log: Decklog, run_id: str, tmp_path: Path) -> None:
    program = "import os, sys; open(sys.argv[1], 'w').write(os.environ['DECKLOG_NOTICE_WHAT'] + sys.stdin.read())"
    out = tmp_path / "told; rm -rf x"
    log.notices.add_rule("needs_attention", "command", target=[sys.executable, "-c", program, str(out)])
    log.approvals.ask(run_id, "$(touch owned)", by="ada", about="x")
    assert Round(log).run().sent == 1
    what, _, body = out.read_text().partition("{")
    assert what.startswith("$(touch owned)")
    assert json.loads("{" + body)["run_id"] == run_id


def test_failed_command_has_an_error(log: Decklog, run_id: str) -> None:
    log.notices.add_rule("needs_attention", "command", target=["/nowhere/program"])
    log.notices.add_rule("needs_attention", "command", target=[sys.executable, "-c", "import sys; sys.exit('no luck')"])
    log.approvals.ask(run_id, "Push?", by="ada", about="x")
    errors = [str(notice.error) for notice in Round(log).run().notices]
    assert len(errors) == 2
    assert any("/nowhere/program could not be started" in error for error in errors)
    assert any(error.endswith("ended with 1: no luck") for error in errors)


def test_desktop_notice_uses_the_installed_program(
    log: Decklog, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.notices.add_rule("needs_attention", "desktop")
    log.approvals.ask(run_id, "--urgency=critical", by="ada", about="x")
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/told\n')
    program.chmod(0o700)
    assert Round(log).run().sent == 1
    words = (tmp_path / "told").read_text().split("|")
    assert words[:3] == ["--app-name=Decklog", "--", "Decklog: needs attention"]
    assert words[3].startswith("--urgency=critical\n")
    program.unlink()
    log.approvals.ask(run_id, "Push?", by="ada", about="y")
    assert [notice.error for notice in Round(log).run().notices] == ["there is neither notify-send nor osascript here"]


def test_a_test_is_sent_at_once(log: Decklog, hook: Hook) -> None:
    sent = Round(log).test(rule(log, hook).id)
    assert sent.state == "sent"
    assert hook.subjects == ["This is a test notice."]


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ("webhook", ["http://example.org/"]),
        ("webhook", ["https://me:word@example.org/"]),
        ("webhook", ["ftp://127.0.0.1/"]),
        ("webhook", []),
        ("webhook", ["http://[::1"]),
        ("command", []),
        ("command", [" "]),
        ("desktop", ["x"]),
    ],
)
def test_a_target_that_can_not_be_is_refused(log: Decklog, channel: Any, words: list[str]) -> None:
    with pytest.raises(Invalid):
        log.notices.add_rule("done", channel, target=words)


@pytest.mark.slow
def test_rules_need_the_proof_of_a_bound_owner(log: Decklog, run_id: str, hook: Hook, tmp_path: Path) -> None:
    old = rule(log, hook)
    key = make_keys(tmp_path)["owner"]
    log.trust.bind("ana", "cli", key.public)
    with pytest.raises(Unproven):
        rule(log, hook)
    log.approvals.ask(run_id, "Push?", by="ada", about="x")
    assert Round(log).run().made == 0
    with pytest.raises(Invalid, match="not signed by the owner"):
        Round(log).test(old.id)
    with log.proving(key=key.path):
        rule(log, hook)
    assert Round(log).run().sent == 1
    assert log.journal.verify().ok
