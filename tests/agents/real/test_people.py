"""Claude Code and Codex under the conductor as they ship, and the people around them.

Several items, alone and mixed; comments, messages and takeovers; trouble that is nobody's fault. A model on loopback answers by
script.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog
from decklog.conductor.conductor import Conductor
from decklog.conductor.context import RunContext
from decklog.conductor.items import takeover
from decklog.conductor.items.item import build_patch, find_item
from decklog.guard.sandbox.sandbox import SandboxKind, best_kind
from decklog.guard.shell import process_tree
from tests.agents.fake_model import FakeModel, Step, Use
from tests.agents.real.programs import CLAUDE, CODEX, needs
from tests.agents.real.test_conductor import (
    SETTINGS,
    by_bash,
    by_exec,
    by_patch,
    by_write,
    claude_settings,
    codex_settings,
)
from tests.conductor.plans import RUNNER, Work, landed, landed_titles, make_checked_repository, settle, states, task_of
from tests.programs import call
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(best_kind() is SandboxKind.NONE, reason="no sandbox can be had here")

EXTENDS = {"claude": "claude-code", "codex": "codex"}
RUN: dict[str, Callable[[str], Use]] = {"claude": by_bash, "codex": by_exec}
WRITE: dict[str, Callable[[str, str], Use]] = {"claude": by_write, "codex": by_patch}
PATHS = {"claude": CLAUDE, "codex": CODEX}
# What the check of the first round prints chooses the answers of the second.
PRICE = "def price(amount):\n    return amount\n"
PRICE_TEST = 'import shop\n\n\ndef test_price():\n    assert shop.price(100) == 100, "lane=price-again go"\n'


@dataclass
class Shop:
    """A repository in which both programs may work, and the log of its runs."""

    folder: Path
    home: Path
    target: str
    model: FakeModel
    log: Decklog = field(init=False)

    def work(self, *items: dict[str, Any]) -> RunContext:
        return Work(self.log, self.folder, *items).run()

    def begin(self, *items: dict[str, Any]) -> tuple[RunContext, threading.Thread]:
        """Start a run, and work on it in another thread."""
        context = Work(self.log, self.folder, *items).context()
        thread = threading.Thread(target=Conductor(context).run)
        thread.start()
        return context, thread

    def command(self, *words: str) -> str:
        done = call(list(words), cwd=self.folder, variables={"HOME": str(self.home), "DECKLOG_DB": self.target}, timeout=120)
        assert done.code == 0, done
        return done.out.decode()


@contextmanager
def opened(tmp_path: Path, patch: pytest.MonkeyPatch, names: tuple[str, ...], script: dict[str, list[Step]]) -> Iterator[Shop]:
    home = tmp_path / "home"
    home.mkdir()
    patch.setenv("HOME", str(home))
    patch.setenv("PATH", f"{CLAUDE.parent}:{CODEX.parent}:/usr/local/bin:/usr/bin:/bin")
    with FakeModel(script) as model:
        files = {"run_tests.py": RUNNER.read_text(), "shop.py": PRICE, "tests/test_shop.py": PRICE_TEST, "notes.txt": "title\n"}
        folder = make_checked_repository(tmp_path / "repository", **files)
        claude_settings(model, home, patch)
        codex_settings(model, home, patch)
        quiet = 'env = { HTTPS_PROXY = "http://127.0.0.1:9", NO_PROXY = "127.0.0.1" }'
        agents = "".join(f'[agents.{name}]\nextends = "{EXTENDS[name]}"\n{quiet}\n' for name in names)
        settle(folder, f"{SETTINGS.replace('agents = 2', 'agents = 3')}{agents}[roles]\nworker = {json.dumps(names[:1])}\n")
        shop = Shop(folder, home, str(tmp_path / "decklog.db"), model)
        with Decklog.open(shop.target) as shop.log:
            yield shop


@contextmanager
def kept_transcripts(shop: Shop) -> Iterator[None]:
    """Copy the agents' transcripts to the person's home, where an import looks for them: theirs go with their workspaces."""
    is_over = threading.Event()

    def copy() -> None:
        while not is_over.wait(0.1):
            paths = [os.path.join(one, name) for one, _, names in os.walk(shop.folder.parent / "state") for name in names]
            for path in (one for one in paths if one.endswith(".jsonl") and "/agent/home/" in one):
                target = shop.home / path.partition("/agent/home/")[2]
                target.parent.mkdir(parents=True, exist_ok=True)
                with suppress(OSError):
                    shutil.copyfile(path, target)

    thread = threading.Thread(target=copy)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def work_item(name: str, agent: str) -> dict[str, Any]:
    return {"name": name, "title": f"Item {name}", "objective": f"lane={name} go", "agent": agent}


def one_of(name: str) -> Any:
    return pytest.param(name, marks=needs(PATHS[name]))


@pytest.fixture(params=[one_of(name) for name in EXTENDS])
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    write, run = WRITE[agent], RUN[agent]
    script = {
        "slow": [Step("I write it.", (write("four.py", "FOUR = 4\n"),)), Step("It is written.", seconds=5)],
        "quick": [Step("I write it.", (write("four.py", "FOUR = 4\n"),)), Step("It is written.")],
        "why": [Step("Four is enough.")],
        "more": [Step("I do that.", (run("echo SIX = 6 >> four.py"),)), Step("That is done.")],
    }
    with opened(tmp_path, monkeypatch, (agent,), script) as shop:
        yield shop


# Several items


@needs(CLAUDE)
@needs(CODEX)
@pytest.mark.parametrize("names", [("claude",), ("codex",), ("claude", "codex")], ids="+".join)
def test_three_items_of_which_one_is_red_at_first_and_two_conflict_land(
    names: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = names[0], names[-1]
    wrong, right = "sed -i 's/return amount$/return amount + 1/' shop.py", "sed -i 's/amount + 1$/amount + 0/' shop.py"
    script = {
        "price": [Step("A price.", (RUN[first](wrong),)), Step("Done.")],
        "price-again": [Step("It was wrong.", (RUN[first](right),)), Step("Done.")],
        "left": [Step("Left.", (RUN[first]("sed -i 's/^title.*/& left/' notes.txt"),)), Step("Done.", seconds=1)],
        "right": [Step("Right.", (RUN[last]("sed -i 's/^title.*/& right/' notes.txt"),)), Step("Done.", seconds=1)],
    }
    with opened(tmp_path, monkeypatch, names, script) as shop:
        with kept_transcripts(shop):
            context = shop.work(work_item("price", first), work_item("left", first), work_item("right", last))
        assert sorted(landed_titles(context)) == ["Item left", "Item price", "Item right"], states(context)
        assert "return amount + 0" in landed(context, "shop.py")
        assert sorted(landed(context, "notes.txt").split()) == ["left", "right", "title"]
        findings: Any = [task.inputs.get("findings") or () for task in shop.log.tasks.find(context.run_id, role="work", limit=50)]
        assert {one["kind"] for found in findings for one in found} == {"fail", "conflict"}
        workers = {task.inputs["agent"] for task in shop.log.tasks.find(context.run_id, role="check", limit=50)}
        assert workers == set(names)
        assert {task.failures for task in shop.log.tasks.find(context.run_id, limit=50)} == {0}
        before = shop.log.ledger.summary()["total"]
        given = sum(one.step.output_tokens for one in shop.model.given)
        assert sum(charge.output_tokens for charge in shop.log.ledger.find(context.run_id, limit=200)) == given
        # Codex's stream names no model; its transcript does.
        assert "codex" not in {charge.model for charge in shop.log.ledger.find(context.run_id, limit=200)}
        assert shop.log.ledger.summary(context.run_id)["total"]["unpriced_calls"] == 0
        for name in names:
            shop.command("import", name, "--all")
            assert list(shop.home.glob(f".{name}/**/*.jsonl")), "there was something to import"
        assert shop.log.ledger.summary()["total"] == before
        assert shop.log.journal.verify().ok


@needs(CLAUDE)
@needs(CODEX)
@pytest.mark.parametrize("winner", EXTENDS)
def test_of_two_agents_that_race_the_first_lands_and_the_other_costs_what_it_cost(
    winner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (loser,) = {*EXTENDS} - {winner}
    # Each has the tools of the other refused.
    steps = [
        Step("I write it.", (by_write("four.py", "FOUR = 4\n"), by_patch("four.py", "FOUR = 4\n")), output_tokens=31),
        Step("I look.", (RUN[loser]("sleep 100"),)),
        Step("It is written."),
    ]
    with opened(tmp_path, monkeypatch, (winner, loser), {"both": steps}) as shop:
        item = {name: value for name, value in work_item("both", winner).items() if name != "agent"}
        context = shop.work({**item, "race": [winner, loser]})
        assert landed(context, "four.py") == "FOUR = 4", states(context)
        assert find_item(shop.log, context.run_id, "both").landing.inputs["racer"] == winner
        charges = shop.log.ledger.find(context.run_id, limit=200)
        assert sum(charge.output_tokens for charge in charges) == sum(one.step.output_tokens for one in shop.model.given)
        assert {charge.cost_microdollars is None for charge in charges} == {False}
        assert {charge.agent_id for charge in charges} == {winner, loser}


# People


def test_a_comment_on_a_diff_is_worked_on_and_landed(agent: str, shop: Shop) -> None:
    context = shop.work(work_item("quick", agent))
    assert "+FOUR = 4" in shop.command("run", "diff", f"{context.run_id}.quick")
    posted = json.loads(shop.command("run", "comment", f"{context.run_id}.quick", "four.py:1", "lane=more go", "--json"))["data"]
    Conductor(context).run()
    assert landed(context, "four.py").split("\n") == ["FOUR = 4", "SIX = 6"], states(context)
    told = shop.log.inbox.get(posted["id"])
    assert (told.state, told.seen_by, told.answer) == ("answered", agent, f"landed as {context.target_commit()[:12]}")


def test_a_question_about_a_landed_change_is_answered_in_words(agent: str, shop: Shop) -> None:
    context = shop.work(work_item("quick", agent))
    target = context.target_commit()
    posted = json.loads(shop.command("run", "message", f"{context.run_id}.quick", "lane=why go", "--json"))["data"]
    Conductor(context).run()
    told = shop.log.inbox.get(posted["id"])
    assert (told.state, told.answer, told.answered_by) == ("answered", "Four is enough.", agent), states(context)
    assert (set(states(context).values()), context.target_commit()) == ({"done"}, target)
    assert "+FOUR = 4" in shop.command("run", "diff", f"{context.run_id}.quick")
    assert task_of(context, "quick.w2").attempts == 1


def test_a_message_reaches_a_running_agent_and_what_it_asks_for_lands(agent: str, shop: Shop) -> None:
    context, thread = shop.begin(work_item("slow", agent))
    wait_until(lambda: len(shop.model.given) == 2, seconds=60)
    posted = json.loads(shop.command("run", "message", f"{context.run_id}.slow", "lane=more go", "--json"))["data"]
    thread.join()
    assert landed(context, "four.py").split("\n") == ["FOUR = 4", "SIX = 6"], states(context)
    told = shop.log.inbox.get(posted["id"])
    assert (told.state, told.seen_by) == ("answered", agent)
    assert told.seen_at is not None
    sessions = len(shop.log.effects.find(context.run_id, tool="conductor.spawn"))
    # Claude Code takes messages while it works; Codex gets them in its next round.
    assert sessions == {"claude": 1, "codex": 2}[agent]
    delivered = shop.log.journal.find(context.run_id, subtype="agent.delivered")
    assert [entry.body for entry in delivered] == {"claude": ["lane=more go"], "codex": []}[agent]


def test_a_person_takes_over_and_what_they_change_lands_with_what_the_agent_did(agent: str, shop: Shop) -> None:
    context, thread = shop.begin(work_item("slow", agent))
    wait_until(lambda: "FOUR" in build_patch(context, find_item(shop.log, context.run_id, "slow")), seconds=60)
    opened = takeover.open_item(context, find_item(shop.log, context.run_id, "slow"), by="Ana")
    thread.join()
    # The agent was ended before it reported what it spent.
    total = shop.log.ledger.summary(context.run_id)["total"]
    assert (total["output_tokens"], total["unpriced_calls"]) == (Step().output_tokens, 0), total
    folder = Path(opened.folder)
    assert (folder / "four.py").read_text() == "FOUR = 4\n"
    assert opened.resume is not None
    assert f"HOME={folder.parent}/agent/home {agent} " in opened.resume
    if agent == "claude":
        # The line goes on with the agent's own session: a question on it is answered there.
        said = subprocess.run(f"{opened.resume} -p 'lane=more go'", shell=True, capture_output=True, text=True, check=False)
        assert said.returncode in (0, 1), said
        assert "That is done." in said.stdout, said
    with (folder / "four.py").open("a") as file:
        file.write("FIVE = 5\n")
    takeover.continue_item(context, find_item(shop.log, context.run_id, "slow"), by="Ana")
    Conductor(context).run()
    assert {"FOUR = 4", "FIVE = 5"} <= set(landed(context, "four.py").split("\n")), states(context)
    assert task_of(context, "slow.c1").inputs["agent"] == "by hand: Ana"


# What is nobody's fault


def reasons(context: RunContext, name: str) -> list[str]:
    """List why a task was given back, by its history."""
    history = context.log.journal.history("tasks", f"{context.run_id}.{name}", limit=50)
    return [str(entry.body) for entry in history]


def test_a_check_that_is_killed_costs_no_attempt_and_the_reason_names_it(agent: str, shop: Shop) -> None:
    (shop.folder / "tests/test_slow.py").write_text("import time\n\n\ndef test_slow():\n    time.sleep(1.5)\n")
    subprocess.run(["git", "add", "-A"], cwd=shop.folder, check=True)
    settle(shop.folder, (shop.folder / "decklog.toml").read_text() + "\n")
    context = Work(shop.log, shop.folder, work_item("quick", agent)).context()
    # Three times in a row is what a conductor tries itself.
    killed: list[int] = []
    is_over = threading.Event()
    killer = threading.Thread(target=_kill_checks, args=(context, killed, is_over))
    killer.start()
    Conductor(context).run()
    is_over.set()
    killer.join()
    assert len(killed) == 3
    assert landed_titles(context) == ["Item quick"], states(context)
    assert any("killed by SIGKILL" in reason for reason in reasons(context, "quick.c1")), reasons(context, "quick.c1")
    assert {task.failures for task in shop.log.tasks.find(context.run_id, limit=50)} == {0}


def _kill_checks(context: RunContext, killed: list[int], is_over: threading.Event) -> None:
    while not is_over.wait(0.02) and len(killed) < 3:
        for one in process_tree.all_processes():
            try:
                words = Path(f"/proc/{one.pid}/cmdline").read_bytes().split(b"\0")
                inside = os.readlink(f"/proc/{one.pid}/cwd").startswith(str(context.checks_folder))
            except OSError:
                continue
            if inside and b"run_tests.py" in words and words[0].endswith(b"python3") and one.pid not in killed:
                killed.append(one.pid)
                os.kill(one.pid, signal.SIGKILL)


def test_a_quota_costs_no_attempt_and_the_reason_names_it(agent: str, shop: Shop) -> None:
    shop.model.troubles += [429] * 2
    context = shop.work(work_item("quick", agent))
    assert landed_titles(context) == ["Item quick"], states(context)
    assert task_of(context, "quick.w1").failures == 0
    told = reasons(context, "quick.w1")
    assert any(f"quota of {agent}: no attempt is used: " in reason and "429" in reason for reason in told), told


def test_a_missing_login_costs_no_attempt_and_the_reason_has_the_programs_words(
    agent: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "CODEX_API_KEY"):
        monkeypatch.delenv(name)
    context, thread = shop.begin(work_item("quick", agent))
    wait_until(lambda: bool(shop.log.gates.find(state="closed")))  # type: ignore[arg-type]
    wait_until(lambda: task_of(context, "quick.w1").state == "pending")
    assert [gate.reason for gate in shop.log.gates.find()] == ["login"]
    task = task_of(context, "quick.w1")
    words = {"claude": "login", "codex": "CODEX_API_KEY"}[agent]
    assert f"login of {agent}: no attempt is used" in str(task.reason), task.reason
    assert words in str(task.reason).replace("login of", ""), task.reason
    # As soon as somebody has logged in, the run goes on by itself.
    for name in ("ANTHROPIC_API_KEY", "CODEX_API_KEY"):
        monkeypatch.setenv(name, "dummy")
    thread.join()
    assert landed_titles(context) == ["Item quick"], states(context)
    assert task_of(context, "quick.w1").failures == 0
