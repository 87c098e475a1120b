"""What has landed in a run is pushed as a branch and requested to be merged, by gh or glab, once, and through the same gate."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Program, Said
from tests.conductor.plans import TRIPLE, work_item
from tests.conductor.repositories import git
from tests.conductor.test_run_command import Person

# Answers as the forges' programs do, and records its arguments; a request that was opened is open from then on.
FORGE = """#!/bin/sh
here=$(dirname "$0")
echo "$0 $1 $2" | sed 's|.*/||' >> "$here/calls"
if [ "$2" = list ]; then cat "$here/open" 2>/dev/null || echo '[]'; exit 0; fi
cat > "$here/body"
printf '%s\\n' "$@" > "$here/words"
echo '[{"url": "https://example.test/7", "web_url": "https://example.test/7"}]' > "$here/open"
echo "Creating"
echo https://example.test/7
"""


@pytest.fixture
def person(decklog: Program, checked: Path, sqlite_target: str) -> Person:
    return Person(decklog, checked, sqlite_target)


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    return folder


def install(programs: Path, name: str) -> None:
    (programs / name).write_text(FORGE)
    (programs / name).chmod(0o755)


def worked(person: Person, *items: dict[str, Any], url: str | None = None) -> str:
    """Have a run land an item, in a clone of a bare remote; return the run."""
    folder = person.repository.parent
    git(folder, "init", "-q", "--bare", "-b", "main", "origin.git")
    git(person.repository, "remote", "add", "origin", str(folder / "origin.git"))
    if url is not None:
        git(person.repository, "config", f"url.{folder}/origin.git.insteadOf", url)
        git(person.repository, "remote", "set-url", "origin", url)
    git(person.repository, "push", "-q", "origin", "main")
    done = person.call("run", "--plan", person.plan(*(items or (work_item("triple", TRIPLE),))))
    assert done.code == 0, done
    return done.out.rsplit("decklog run land ", 1)[1].strip()


def landed(person: Person, programs: Path, *words: str) -> Said:
    return person.call("run", "land", "--pr", *words, PATH=f"{programs}:{os.environ['PATH']}")


@pytest.mark.slow
def test_a_request_with_items_checks_review_and_cost_is_opened_once(person: Person, programs: Path) -> None:
    install(programs, "gh")
    run_id = worked(person)
    before = git(person.repository, "rev-parse", "main")
    said = landed(person, programs, "--json")
    assert said.data["url"] == "https://example.test/7", said
    target = git(person.repository, "rev-parse", f"refs/decklog/{run_id}/target")
    origin = person.repository.parent / "origin.git"
    assert git(origin, "rev-parse", f"decklog/{run_id}") == target
    assert git(person.repository, "rev-parse", "main") == before
    words = (programs / "words").read_text().split("\n")
    assert words[:10] == [
        *("pr", "create", "--base", "main", "--head", f"decklog/{run_id}", "--title", "Make it better", "--body-file", "-")
    ]
    body = (programs / "body").read_text()
    for fact in (f"- Item triple ({target[:12]})", "- tests: pass", "None is set up.", "Spent $0.00", f"Decklog-Run: {run_id}"):
        assert fact in body, body
    assert landed(person, programs).code == 0
    assert (programs / "calls").read_text().split("\n") == ["gh pr list", "gh pr create", ""]
    (approval,) = [one for one in _approvals(person, run_id) if one["source"] == "conductor.publish"][:1]
    assert (approval["state"], approval["decided_by"]) == ("granted", "Ana")


def _approvals(person: Person, run_id: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = person.call("approvals", "find", run_id, "--json").data
    return found


@pytest.mark.slow
def test_a_remote_at_gitlab_gets_its_request_by_glab(person: Person, programs: Path) -> None:
    install(programs, "gh")
    install(programs, "glab")
    run_id = worked(person, url="https://gitlab.example.test/shop.git")
    said = landed(person, programs, "--as", "triple")
    assert "https://example.test/7" in said.out, said
    words = (programs / "words").read_text().split("\n")
    assert words[:6] == ["mr", "create", "--source-branch", "triple", "--target-branch", "main"]
    assert (programs / "calls").read_text().split("\n")[0] == "glab mr list"
    assert run_id in (programs / "words").read_text()


@pytest.mark.slow
def test_without_a_program_or_a_remote_nothing_is_pushed(person: Person, programs: Path) -> None:
    for name in ("gh", "glab"):
        install(programs, name)
    worked(person)
    (programs / "gh").unlink()
    (programs / "glab").unlink()
    only = f"{programs}:/usr/bin:/bin"
    refused = person.call("run", "land", "--pr", PATH=only)
    assert (refused.code, "gh or glab, which is not installed" in refused.err) == (1, True), refused
    assert git(person.repository.parent / "origin.git", "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert person.call("run", "land", "--pr", "--remote", "none", PATH=only).code == 3
    assert "## Work items" in person.call("run", "land", "--pr", "--dry-run").out


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_a_repository_with_a_gate_publishes_only_what_the_gate_has_seen_as_a_whole(
    person: Person, programs: Path, count: int
) -> None:
    install(programs, "gh")
    settings = person.repository / "decklog.toml"
    settings.write_text(settings.read_text() + "[review]\nmodel_passes = []\nneeds_tests = false\n")
    git(person.repository, "commit", "-q", "-a", "-m", "A gate")
    items = [work_item("triple", TRIPLE), work_item("four", ["write", "four.py", "FOUR = 4\n"], needs=["triple"])]
    run_id = worked(person, *items[:count])
    reviews = person.call("reviews", "find", run_id, "--json").data
    assert {review["verdict"] for review in reviews} <= {"pass", "comment"}, reviews
    said = landed(person, programs)
    if count == 1:
        assert said.code == 0, said
        assert f"review {reviews[0]['id']}" in (programs / "body").read_text()
    else:
        assert (said.code, "was not reviewed: decklog review" in said.err) == (4, True), said
        assert not (programs / "words").exists()
        assert git(person.repository.parent / "origin.git", "for-each-ref", "--format=%(refname)") == "refs/heads/main"
