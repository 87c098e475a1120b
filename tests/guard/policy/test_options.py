"""Claims about options of which the policy's entries say nothing, and about what subcommands start."""

import pytest

from decklog.guard.policy import Decision, judge

READERS = (
    "cat",
    "head",
    "wc",
    "ls",
    "tree",
    "stat",
    "du",
    "jq",
    "sort",
    "column",
    "cut",
    "diff",
    "md5sum",
    "csvcut",
    "hexyl",
    "b3sum",
)


@pytest.mark.parametrize("program", READERS)
def test_an_unknown_option_of_a_program_that_only_reads_is_no_danger(program: str) -> None:
    for option in ("--some-flag", "--colour-scheme=dark", "--width 80", "--unknown=value", "--depth=3"):
        assert judge(f"{program} {option} README.md").is_allowed, option


@pytest.mark.parametrize("program", READERS)
def test_what_it_reads_is_still_judged(program: str) -> None:
    assert judge(f"{program} --some-flag ~/.ssh/id_rsa").decision is not Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "pytest --unknown-output=/etc/x",
        "eslint --some-config=/tmp/evil.js src",
        "make SOME_SHELL='sh -c id; rm -rf ~'",
        "tar cf a.tar --some-exec=id src",
    ],
)
def test_an_unknown_option_of_a_program_that_runs_or_writes_is_asked_about_where_it_leads_out(command: str) -> None:
    assert not judge(command).is_allowed


@pytest.mark.parametrize(
    "starter", ["uv run", "poetry run", "bundle exec", "docker exec web", "docker compose run --rm web", "docker run --rm node"]
)
def test_what_a_subcommand_starts_is_judged_as_the_command_it_is(starter: str) -> None:
    assert judge(f"{starter} ls -la").is_allowed
    assert judge(f"{starter} rm -rf /").decision is Decision.DENY
    assert not judge(f"{starter} sh").is_allowed


def test_a_scratch_file_may_run_where_the_command_itself_has_written_all_of_it() -> None:
    assert judge("echo 'print(1)' > /tmp/a.py\npython3 /tmp/a.py").is_allowed
    assert not judge("python3 /tmp/a.py").is_allowed
    assert not judge("echo 'print(1)' >> /tmp/a.py\npython3 /tmp/a.py").is_allowed
    assert not judge("echo 'print(1)' > /tmp/a.py\ncp /tmp/b.py /tmp/a.py\npython3 /tmp/a.py").is_allowed
