"""Our own command, as an agent might call it: what only the manager may do is refused, wherever its settings stand."""

import pytest

from decklog.cli.call import WITH_VALUE
from decklog.guard.policy import Decision, judge

DECIDE = ["approvals", "decide", "apr_1", "granted", "--by", "em"]


@pytest.mark.parametrize(
    "setting", [*([flag, "x.db"] for flag in WITH_VALUE), ["--brief"], ["--no-brief"], ["--no-color"], ["--json"]]
)
@pytest.mark.parametrize("place", range(len(DECIDE) - 1))
def test_no_setting_hides_what_only_the_manager_may_do(setting: list[str], place: int) -> None:
    words = ["decklog", *DECIDE[:place], *setting, *DECIDE[place:]]
    assert judge(" ".join(words)).decision is not Decision.ALLOW


@pytest.mark.parametrize(
    "words", ["export otlp commas --to http://example.org", "export --json otlp commas", "receive otlp --port 0"]
)
def test_no_agent_sends_the_record_elsewhere_or_opens_a_way_in(words: str) -> None:
    assert judge(f"decklog {words}").decision is not Decision.ALLOW


@pytest.mark.parametrize(
    "words",
    [
        "export markdown --replace ~/.bashrc",
        "export markdown ~/.bashrc --run r1",
        "export jsonl .git/hooks/pre-commit",
        "export html r1 --out .git/hooks/pre-commit",
        "backup ~/.bashrc",
        "backup /etc/cron.d/x --overwrite",
        "report r1 --html .claude/settings.json",
        "review --out ~/.bashrc",
        "--db ~/.bashrc init",
        "import jsonl ~/.ssh",
        "artifacts add r1 log ~/.ssh/id_rsa",
        "note @~/.aws/credentials",
    ],
)
@pytest.mark.parametrize("program", ["decklog", "python3 -m decklog"])
def test_its_files_are_judged_like_those_of_any_program(program: str, words: str) -> None:
    assert judge(f"{program} {words}").decision is Decision.DENY


@pytest.mark.parametrize(
    "words",
    ["backup backup.db", "export markdown plan.md --run r1", "export html r1 --out run.html", "note 'see /etc/hosts'", "now"],
)
def test_its_files_in_the_repository_are_written_unasked(words: str) -> None:
    assert judge(f"decklog {words}").decision is Decision.ALLOW
