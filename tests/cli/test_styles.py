"""Colours: on a terminal alone, and only if they are wanted there."""

import io
import sys

import pytest

from decklog import Decklog
from decklog.cli import run, terminal


class Screen(io.StringIO):
    """What was written to a terminal."""

    def isatty(self) -> bool:
        return True


def written(words: str, path: str, kind: type[io.StringIO] = Screen) -> tuple[str, str]:
    """Run a command on a terminal, or into a pipe; give what is written and what is said."""
    with pytest.MonkeyPatch.context() as patch:
        out, err = kind(), kind()
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", err)
        patch.setattr(terminal, "_has_colours", True)
        run([*words.split(), "--db", path])
    return out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("coloured") / "decklog.db"
    with Decklog.open(path) as log:
        log.runs.start("a goal", run_id="r")
        log.tasks.add("r", "one", task_id="t1")
        log.tasks.add("r", "two", task_id="t2")
        claim = log.tasks.claim("r", worker="ana", task_id="t1")
        assert claim is not None
        claim.finish("well")
        log.approvals.ask("r", "May I?", by="ana", about="it")
        log.budgets.set("all", limit_tokens=10)  # type: ignore[arg-type]
    return str(path)


AMBER, GREEN, RED = "\x1b[1;33m", "\x1b[32m", "\x1b[31m"
COLOURED = {
    "runs find": f"{AMBER}needs attention",
    "tasks find r": f"{GREEN}done",
    "tasks show t1": f"{GREEN}done",
    "tasks board r": f"{GREEN}✓ ",
    "runs show r": f"{AMBER}open",
    "runs timeline r": f"{GREEN}█",
    "ledger burn": f"{GREEN}  [ok]",
    "now": f"{AMBER}▲ needs attention",
    "journal find r": "\x1b[2m20",
    "approvals find": f"{AMBER}open",
}


@pytest.mark.parametrize("words", COLOURED)
def test_states_have_their_colours_on_a_terminal(words: str, path: str) -> None:
    assert COLOURED[words] in written(words, path)[0]


def test_an_error_begins_in_red(path: str) -> None:
    assert written("tasks show nope", path)[1].startswith(f"{RED}decklog:\x1b[0m there is no task nope")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["option", "variable", "pipe", "dumb"])
def test_nothing_is_coloured_where_that_is_not_wanted(way: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "variable":
        monkeypatch.setenv("NO_COLOR", "1")
    if way == "dumb":
        monkeypatch.setenv("TERM", "dumb")
    option = " --no-color" if way == "option" else ""
    for words in (*COLOURED, "tasks show nope"):
        said = "".join(written(words + option, path, io.StringIO if way == "pipe" else Screen))
        assert said
        assert "\x1b" not in said


def test_a_state_that_nobody_knows_is_plain() -> None:
    assert terminal.status_style("flying") == terminal.PLAIN
