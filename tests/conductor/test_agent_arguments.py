"""One sandbox holds an agent in: Decklog's own, or, where that is off, the one of the agent's program."""

import pytest

from decklog.conductor.agents.description import describe
from decklog.conductor.brief import check_line
from decklog.conductor.settings import define_check


def arguments(program: str, *, is_sandboxed: bool, **values: object) -> list[str]:
    return describe("mine", {"extends": program}).arguments(values, is_sandboxed=is_sandboxed)


@pytest.mark.parametrize(("is_sandboxed", "word"), [(True, "danger-full-access"), (False, "workspace-write")])
def test_codex_uses_its_own_sandbox_only_where_there_is_no_other(is_sandboxed: bool, word: str) -> None:
    words = arguments("codex", is_sandboxed=is_sandboxed)
    assert words.count("--sandbox") == 1
    assert words[words.index("--sandbox") + 1] == word


def test_claude_has_its_calls_judged_within_the_sandbox_and_uses_its_own_elsewhere() -> None:
    inside = arguments("claude-code", is_sandboxed=True, policy_hook="judge")
    assert '"command": "judge"' in inside[inside.index("--settings") + 1]
    outside = arguments("claude-code", is_sandboxed=False, policy_hook="judge")
    assert '"enabled": true' in outside[outside.index("--settings") + 1]
    assert not [word for word in outside if "judge" in word]


def test_a_model_that_only_answers_needs_no_hook() -> None:
    assert "--settings" not in arguments("claude-code", is_sandboxed=True)


def test_the_line_of_a_check_is_one_that_a_shell_takes() -> None:
    check = define_check(
        {"name": "t", "command": ["run it", "--out={report}", "{changed}", "{report}"], "env": {"A": "b c"}, "report": "none"}
    )
    line = "A='b c' 'run it' --out=\"$TMPDIR\"/report.xml PATHS \"$TMPDIR\"/report.xml"
    assert check_line(check, '"$TMPDIR"/report.xml') == line
