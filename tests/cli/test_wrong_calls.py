"""Calls that are wrong: each says in one line what the matter is, and what to do next; done literally, that works."""

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from decklog import BudgetScope, Decklog
from tests.cli.conftest import Program, Said
from tests.programs import call

USAGE, INVALID, MISSING, DENIED, CONFLICT, REFUSED = 2, 1, 3, 4, 5, 6


@pytest.fixture(scope="module")
def happened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log in which some things have happened."""
    path = tmp_path_factory.mktemp("happened") / "log.db"
    with Decklog.open(path) as log:
        log.runs.start("a goal", run_id="run_1")
        log.tasks.add("run_1", "done", task_id="over")
        log.tasks.claim("run_1", worker="w")
        log.tasks.finish("over", fence=1)
        log.tasks.add("run_1", "work", task_id="t1")
        log.approvals.ask("run_1", "May I?", by="dev", about="x", approval_id="apr_1")
        log.budgets.set(BudgetScope.RUN, scope_id="run_1", limit_microdollars=1)
        log.tasks.add("run_1", "more work", task_id="lexer", depends_on=["t1"])
        log.runs.start("every night", run_id="nightly")
        log.runs.finish("nightly")
        log.runs.start("ended", run_id="run_0")
        log.runs.finish("run_0")
    return path


@pytest.fixture
def decklog(tmp_path: Path, happened: Path) -> Callable[..., Said]:
    """Run `decklog` on a copy of that log."""
    log = shutil.copy(happened, tmp_path / "log.db")
    own = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "COLUMNS": "100", "DECKLOG_DB": str(log)}

    def run(*words: str) -> Said:
        done = call(list(words), cwd=tmp_path, variables=own)
        return Said(done.code, done.out.decode(errors="replace"), done.err.decode(errors="replace"))

    return run


def next_call(words: list[str], said: Said) -> list[str]:
    """Read from an error what to type next, as somebody would who knows nothing else."""
    cause, step = said.err.splitlines()
    near = re.search(r"Did you mean (.+?)\?", step)
    if near is None:
        found = re.findall(r"decklog ((?:[\w@:/.<>-]+|\"[^\"]*\"| )+)", step.rstrip("."))
        assert found, step
        return shlex.split(found[0])
    meant = near[1].split()
    if meant[0] == "decklog":
        return [*meant[1:], *words[len(meant) - 1 :]]
    wrong = re.search(r"--[\w-]+$| '([^']+)'", cause)
    named = (wrong[1] or wrong[0]) if wrong else cause.split()[-1]
    assert named in words, cause
    return [near[1] if word == named else word for word in words]


WRONG = [
    # Words that there are not
    (["taks", "find", "run_1"], USAGE),
    (["doen", "--help"], USAGE),
    (["nxet"], USAGE),
    (["dance"], USAGE),
    (["runs", "view", "run_1"], USAGE),
    (["runs", "lst"], USAGE),
    (["journal", "fnid", "run_1"], USAGE),
    (["groups", "fin", "run_1"], USAGE),
    (["memory", "topcs"], USAGE),
    (["inbox", "recent"], USAGE),
    (["workflow", "shwo"], USAGE),
    (["trust", "shw"], USAGE),
    (["self-edits", "fnd"], USAGE),
    # Options that there are not
    (["tasks", "find", "run_1", "--limt", "3"], USAGE),
    (["runs", "find", "--oldest"], USAGE),
    (["note", "x", "--rnu", "run_1"], USAGE),
    (["next", "--wiat", "0"], USAGE),
    (["ledger", "find", "run_1", "--modle", "m"], USAGE),
    (["where", "--colour"], USAGE),
    # Something lacks, or there is too much
    (["runs", "show"], USAGE),
    (["tasks", "claim", "run_1"], USAGE),
    (["approvals", "decide", "apr_1"], USAGE),
    (["fail"], USAGE),
    (["remember"], USAGE),
    (["criteria", "add", "run_1"], USAGE),
    (["states", "load", "run_1", "none"], USAGE),
    (["context", "show", "nobody"], MISSING),
    (["context", "find", "a", "b", "c"], USAGE),
    (["note", "several", "plain", "words"], USAGE),
    (["runs", "find", "--limit"], USAGE),
    (["runs", "find", "--limit", "1", "--limit", "2"], USAGE),
    (["search"], USAGE),
    # Values of another kind
    (["runs", "find", "--limit", "many"], USAGE),
    (["runs", "find", "--since", "soon"], USAGE),
    (["approvals", "find", "--state", "opne"], USAGE),
    (["runs", "find", "--status", "complete"], USAGE),
    (["journal", "find", "run_1", "--kind", "resoning"], USAGE),
    (["runs", "start", "x", "--metadata", "{"], USAGE),
    (["tasks", "add", "run_1", "x", "--inputs", "[1]"], USAGE),
    (["tasks", "add-many", "run_1", '["x"]'], USAGE),
    (["inbox", "find", "--severity", "critcal"], USAGE),
    (["feedback", "find", "--state", "receved"], USAGE),
    (["spend", "m", "--in", "few"], USAGE),
    (["next", "--wait", "long"], USAGE),
    (["budgets", "find", "--scope", "rnu"], USAGE),
    # Values that mean nothing
    (["runs", "start", " "], INVALID),
    (["runs", "find", "--limit", "0"], INVALID),
    (["journal", "find", "--after", "x"], INVALID),
    (["tasks", "add", "run_1", "x", "--priority", "900"], INVALID),
    (["next", "--lease", "0"], INVALID),
    (["memory", "remember", "No Topic", "words of a lesson"], INVALID),
    (["spend", "run_1"], INVALID),
    (["prices", "find", "--limit", "3"], USAGE),
    (["plan", " "], INVALID),
    (["note", ""], INVALID),
    (["next", "--as", ""], INVALID),
    (["done", "--fence", "3"], USAGE),
    # What there is not
    (["runs", "show", "nobody"], MISSING),
    (["tasks", "show", "nobody"], MISSING),
    (["tasks", "claim", "nobody", "--worker", "w"], MISSING),
    (["approvals", "show", "nobody"], MISSING),
    (["artifacts", "show", "nobody"], MISSING),
    (["ledger", "show", "nobody"], MISSING),
    (["memory", "show", "nobody"], MISSING),
    (["inbox", "answer", "nobody", "x"], MISSING),
    (["feedback", "show", "nobody"], MISSING),
    (["effects", "show", "nobody"], MISSING),
    (["verify", "nobody"], MISSING),
    (["watch", "nobody", "--no-follow"], MISSING),
    (["journal", "show", "run_1", "9999"], MISSING),
    (["runs", "show", "nightl"], MISSING),
    (["tasks", "show", "lexr"], MISSING),
    (["runs", "timeline", "nihgtly"], MISSING),
    (["notify", "test", "nobody"], MISSING),
    (["done"], MISSING),
    (["block", "x"], MISSING),
    (["next", "--run", "nobody"], MISSING),
    # Not now, or not by you
    (["tasks", "resume", "over"], CONFLICT),
    (["tasks", "extend", "over", "--fence", "1"], CONFLICT),
    (["done", "--task", "t1", "--fence", "7"], CONFLICT),
    (["tasks", "add", "run_0", "x"], CONFLICT),
    (["runs", "finish", "run_0", "--status", "failed"], CONFLICT),
    (["approvals", "decide", "apr_1", "granted", "--by", "dev"], DENIED),
    (["ledger", "charge", "m", "--run", "run_1", "--cost", "0.000009"], REFUSED),
]


@pytest.mark.slow
@pytest.mark.parametrize(("words", "code"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_a_wrong_call_says_what_the_matter_is_and_what_works(decklog: Program, words: list[str], code: int) -> None:
    said = decklog(*words)
    assert (said.code, said.out, len(said.err.splitlines())) == (code, "", 2), said
    assert re.match(r"decklog: .{8,}", said.err), said.err
    assert said.err.splitlines()[1].startswith("  ")
    step = next_call(words, said)
    followed = decklog(*step)
    assert followed.code in (0, 7), (said.err, step, followed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code"),
    [(["import", "taskmaster", "nothing.json"], MISSING), (["export", "taskmaster", "there.json", "--run", "run_1"], CONFLICT)],
)
def test_what_is_about_a_file_does_not_lead_to_what_the_log_holds(decklog: Program, words: list[str], code: int) -> None:
    decklog("export", "taskmaster", "there.json", "--run", "run_1")
    said = decklog(*words)
    assert (said.code, next_call(words, said)) == (code, [*words[:2], "--help"]), said.err


@pytest.mark.slow
@pytest.mark.parametrize("words", [["runs", "find", "--db", "none.db"], ["next", "--db", "none.db"]])
def test_without_a_log_the_next_step_makes_one(tmp_path: Path, words: list[str]) -> None:
    own = {"HOME": str(tmp_path / "home"), "XDG_DATA_HOME": str(tmp_path / "data")}
    done = call(words, cwd=tmp_path, variables=own)
    assert (done.code, b"`decklog init`" in done.err) == (MISSING, True)
    assert call(["init", *words[-2:]], cwd=tmp_path, variables=own).code == 0
    assert call(words, cwd=tmp_path, variables=own).code == 0
