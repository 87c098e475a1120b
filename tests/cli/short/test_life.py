"""An agent's day: it knows the first page of help, and nothing of runs, fences or ids."""

from pathlib import Path

import pytest

from tests.cli.conftest import Program, Said

AGENT = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "0b5f2a2e-11aa-4c1e-9a55-3f2a91bc7d10"}


@pytest.fixture
def planned(decklog: Program, log_folder: Path) -> Path:
    """A run with one task that says all it can, and one that waits for it."""
    words = ["--objective", "Read a comma before ]", "--acceptance", '["[1,] parses"]', "--verification", "make test"]
    decklog("tasks", "add", "run_1", "Change the lexer", "--task", "lexer", *words, "--allowed-paths", "src/lexer/**")
    decklog("tasks", "add", "run_1", "Change the parser", "--task", "parser", "--depends-on", "lexer")
    return log_folder


@pytest.mark.slow
def test_an_agent_that_knows_only_the_first_page_lives_a_task_in_eight_calls_and_four_kilobytes(
    decklog: Program, planned: Path
) -> None:
    heard: list[Said] = []

    def call(*words: str) -> Said:
        heard.append(decklog(*words, **AGENT))
        return heard[-1]

    page = call("--help").out
    assert all(f"decklog {name} " in page for name in ("next", "done", "ask"))
    task = call("next")
    assert task.out.splitlines() == [
        "lexer  Change the lexer",
        "  do: Read a comma before ]",
        "  done when: [1,] parses",
        "  check with: make test",
        "  only in: src/lexer/**",
    ]
    assert call("note", "A comma before ] is a separate token").code == 0
    asked = call("ask", "May I change the grammar?")
    assert asked.code == 7
    decklog("approvals", "decide", asked.out.split(":")[0], "granted", "--by", "em", "--rationale", "yes, with a test")
    assert call("ask", "May I change the grammar?").out.endswith(": granted by em: yes, with a test\n")
    assert call("spend", "some-model", "--in", "1200", "--out", "300", "--cost", "0.0125").out.startswith("spent: $0.0125, ")
    assert call("done", "Commas are tokens", "--evidence", "make test").code == 0
    assert len(heard) <= 8
    assert sum(len(said.out) + len(said.err) for said in heard) <= 4096
    assert decklog("tasks", "show", "lexer", "--json").data["result"] == {"evidence": ["make test"]}
    entries = decklog("journal", "find", "run_1", "--task", "lexer", "--json").data
    assert {entry["agent"] for entry in entries if entry["kind"] == "reasoning"} == {"claude-91bc7d10"}
    assert decklog("verify").code == 0
