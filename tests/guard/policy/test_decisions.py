"""Commands that get round a list of forbidden phrases, and commands that only look dangerous: each gets the right decision."""

import tomllib
from pathlib import Path

import pytest

from decklog.cli.call import WITH_VALUE
from decklog.guard.policy import Decision, judge

LISTED = tomllib.loads(Path(__file__).with_name("decisions.toml").read_text(encoding="utf-8"))
READERS = ("cat", "head", "wc", "ls", "tree", "stat", "du", "jq", "sort", "column", "cut", "diff", "md5sum", "hexyl", "b3sum")
STARTERS = ("uv run", "poetry run", "bundle exec", "docker exec web", "docker compose run --rm web", "docker run --rm node")
DECIDE = ["approvals", "decide", "apr_1", "granted", "--by", "em"]


def listed(decision: str) -> list[str]:
    return [command for group in LISTED[decision].values() for command in group]


@pytest.mark.parametrize("decision", list(Decision))
def test_a_command_gets_the_decision_that_it_is_listed_with(decision: Decision) -> None:
    assert [command for command in listed(decision) if judge(command).decision is not decision] == []


def test_no_other_way_to_the_same_end_is_allowed() -> None:
    assert [command for command in listed("held") if judge(command).is_allowed] == []


def test_a_refused_command_in_a_file_that_tools_run_is_asked_about() -> None:
    verdicts = {command: judge(command) for command in listed("written")}
    wrong = [command for command, one in verdicts.items() if (one.decision, one.rule) != (Decision.ASK, "written-to-run")]
    assert wrong == []


@pytest.mark.parametrize(
    ("argv", "decision"),
    [
        (["rm", "-rf", "/"], Decision.DENY),
        (["bash", "-c", "rm  -rf /"], Decision.DENY),
        (["env", "A=b", "bash", "-c", "rm -rf ~"], Decision.DENY),
        (["echo", "rm -rf /; $(rm -rf /)"], Decision.ALLOW),
        (["git", "commit", "-m", "`rm -rf /`"], Decision.ALLOW),
        (["git", "push", "origin", "main"], Decision.DENY),
        (["find", ".", "-exec", "rm", "-rf", "{}", ";"], Decision.DENY),
        (["xargs", "rm", "-rf"], Decision.ASK),
        (["ls", "-la"], Decision.ALLOW),
        (["ls", "|", "rm", "-rf", "/"], Decision.ALLOW),
    ],
)
def test_a_list_of_arguments_runs_without_a_shell(argv: list[str], decision: Decision) -> None:
    assert judge(argv).decision is decision


def test_the_verdict_names_the_rule_and_the_simple_command_of_the_worst_part() -> None:
    verdict = judge("ls && pip install x; (cd src; rm -rf /) | wc -l; pip install y")
    assert (verdict.rule, verdict.command) == ("rm-dangerous-target", "rm -rf /")
    assert "name the exact files" in verdict.reason


@pytest.mark.parametrize(
    ("command", "root", "decision"),
    [
        ("rm -rf /home/ann/repo/build", "/home/ann/repo", Decision.ALLOW),
        ("rm -rf /home/ann/repo", "/home/ann/repo", Decision.DENY),
        ("rm -rf /home/ann/repo/*", "/home/ann/repo", Decision.DENY),
        ("rm -rf /home/ann/repo/../repo", "/home/ann/repo", Decision.DENY),
        ("rm -rf /home/ann", "/home/ann/repo", Decision.DENY),
        ("rm -rf /data/x", "/data/x/repo", Decision.DENY),
        ("cd /home/ann/repo && rm -rf build", "/home/ann/repo", Decision.ALLOW),
        ("cd /home/ann/other && rm -rf build", "/home/ann/repo", Decision.ASK),
        ("cat /home/ann/repo/.env", "/home/ann/repo", Decision.DENY),
        ("echo x > /home/ann/repo/notes.md", "/home/ann/repo", Decision.ALLOW),
    ],
)
def test_the_root_says_which_absolute_paths_are_the_repository_s(command: str, root: str, decision: Decision) -> None:
    assert judge(command, root=root).decision is decision


@pytest.mark.parametrize("program", READERS)
def test_an_unknown_option_of_a_program_that_only_reads_is_no_danger(program: str) -> None:
    for option in ("--some-flag", "--colour-scheme=dark", "--width 80", "--unknown=value", "--depth=3"):
        assert judge(f"{program} {option} README.md").is_allowed, option
    assert not judge(f"{program} --some-flag ~/.ssh/id_rsa").is_allowed


@pytest.mark.parametrize("starter", STARTERS)
def test_what_a_subcommand_starts_is_judged_as_the_command_it_is(starter: str) -> None:
    assert judge(f"{starter} ls -la").is_allowed
    assert judge(f"{starter} rm -rf /").decision is Decision.DENY
    assert not judge(f"{starter} sh").is_allowed


def test_a_scratch_file_may_run_where_the_command_itself_has_written_all_of_it() -> None:
    assert judge("echo 'print(1)' > /tmp/a.py\npython3 /tmp/a.py").is_allowed
    assert not judge("python3 /tmp/a.py").is_allowed
    assert not judge("echo 'print(1)' >> /tmp/a.py\npython3 /tmp/a.py").is_allowed
    assert not judge("echo 'print(1)' > /tmp/a.py\ncp /tmp/b.py /tmp/a.py\npython3 /tmp/a.py").is_allowed


@pytest.mark.parametrize("place", range(len(DECIDE) - 1))
def test_no_setting_of_our_own_command_hides_what_only_the_owner_may_do(place: int) -> None:
    for setting in (*(f"{flag} x.db" for flag in WITH_VALUE), "--brief", "--no-brief", "--no-color", "--json"):
        words = ["decklog", *DECIDE[:place], setting, *DECIDE[place:]]
        assert not judge(" ".join(words)).is_allowed, words
