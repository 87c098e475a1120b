"""A fix is published once: as a branch, a pull request or a patch; obstacles are reported."""

import os
from pathlib import Path

import pytest
from benchmarks.mending_faults import FAULTS, files

from decklog import Conflict, MendState, MendWait
from decklog.fixes.loop import FixInput
from tests.conductor.repositories import git, make_repository
from tests.fixes.bench import Bench

FAULT = FAULTS[3]
# Answers as gh does, and writes down what it was called with; a pull request that was opened is open from then on.
GH = """#!/bin/sh
here=$(dirname "$0")
echo "$1 $2" >> "$here/calls"
if [ "$2" = list ]; then cat "$here/open" 2>/dev/null; exit 0; fi
cat > "$here/body"
echo "$@" > "$here/words"
echo '[{"url": "https://example.test/pull/7"}]' > "$here/open"
echo https://example.test/pull/7
"""


@pytest.mark.slow
def test_a_pull_request_is_opened_once_where_gh_is_there(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "origin.git")
    git(bench.folder, "remote", "add", "origin", str(tmp_path / "origin.git"))
    bench.settle(lambda text: text.replace("[review]", '[mend]\npublish = "pr"\n[review]'))
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gh").write_text(GH)
    (programs / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    bench.commit("by-hand", files(FAULT, "true", tmp_path / "c"), "Give the last item")
    feedback = bench.file(FAULT.said)
    mend = bench.mend(feedback, branch="by-hand")
    assert (mend.published["url"], mend.state) == ("https://example.test/pull/7", "published"), mend.reason
    assert git(tmp_path / "origin.git", "rev-parse", f"mend/{feedback}") == mend.head
    assert f"--head mend/{feedback} --title Mend: Give the last item" in (programs / "words").read_text()
    assert f"> {FAULT.said}" in (programs / "body").read_text()
    assert (programs / "calls").read_text().split("\n")[:2] == ["pr list", "pr create"]
    assert bench.log.feedback.get(feedback).fix_pr_url == "https://example.test/pull/7"
    # A squashed merge: the same change by another commit counts.
    git(bench.folder, "merge", "-q", "--squash", f"mend/{feedback}")
    git(bench.folder, "commit", "-q", "-m", "Give the last item (#7)")
    assert bench.mend(feedback).state == "closed"
    assert (programs / "calls").read_text().count("pr create") == 1


@pytest.mark.slow
def test_sender_of_feedback_gets_the_state_of_its_fix(bench: Bench, tmp_path: Path) -> None:
    where = "https://example.test/issues/9"
    ids = [bench.log.feedback.file("ana", one.said, channel="gh-comment", context_url=where).id for one in (FAULT, FAULTS[4])]
    for feedback, fault in zip(ids, (FAULT, FAULTS[4]), strict=True):
        bench.commit("by-hand", files(fault, "true", tmp_path / "c"))
        mend = bench.mend(feedback, branch="by-hand")
        message = bench.log.inbox.get(str(mend.published["message"]))
        assert (message.channel, message.context_url, message.state) == ("gh-comment", where, "pending")
        assert message.body.startswith(f"ana: merge the fix for {feedback}, branch mend/{feedback}, and have it verified.")
        assert fault.said in message.body
        [waiting] = [one for one in bench.log.overview.waiting() if one.kind == "question"]
        assert (waiting.id, waiting.command) == (message.id, f"decklog mend {feedback}")
        if fault is FAULT:
            bench.merge(f"mend/{feedback}")
            assert bench.mend(mend.id).state == "closed"
            assert "its test passes on" in str(bench.log.inbox.get(message.id).answer)
        else:
            bench.mending.drop(mend.id, "nobody needs it", by="ana")
            assert bench.log.inbox.get(message.id).answer == "given up: nobody needs it"
        assert [one.id for one in bench.log.overview.waiting() if one.kind == "question"] == []


@pytest.mark.slow
def test_replaced_fix_withdraws_its_merge_request(bench: Bench, tmp_path: Path) -> None:
    feedback = bench.file(FAULT.said)
    bench.commit("first", files(FAULT, "true", tmp_path / "c"), "Give the last item")
    earlier = bench.mend(feedback, branch="first").published["message"]
    more = {"NOTES.md": "The last item is meant.\n"}
    bench.commit("second", {**files(FAULT, "true", tmp_path / "c"), **more}, "Give the last item")
    mend = bench.mend(feedback, branch="second")
    assert mend.state == "published", mend.reason
    assert bench.log.inbox.get(str(earlier)).answer == "another fix is in second"
    [message] = [one for one in bench.log.overview.waiting() if one.kind == "question"]
    assert (message.id, message.command) == (mend.published["message"], f"decklog mend {feedback}")


@pytest.mark.slow
def test_patch_file_is_written_and_foreign_branch_left_alone(bench: Bench, tmp_path: Path) -> None:
    bench.settle(lambda text: text.replace("[review]", '[mend]\npublish = "patch"\n[review]'))
    bench.commit("by-hand", files(FAULT, "true", tmp_path / "c"))
    mend = bench.mend(bench.file(FAULT.said), branch="by-hand")
    patch = Path(str(mend.published["patch"]))
    git(bench.folder, "am", "-q", str(patch))
    closed = bench.mend(mend.id)
    assert closed.state == "closed", closed.reason

    bench.settle(lambda text: text.replace('publish = "patch"', 'publish = "branch"'))
    feedback = bench.file(FAULTS[4].said)
    bench.commit("by-hand", files(FAULTS[4], "true", tmp_path / "c"))
    git(bench.folder, "branch", f"mend/{feedback}", "main")
    mend = bench.mend(feedback, branch="by-hand")
    assert (mend.state, mend.waits_for) == ("cleared", "person")
    assert "exists and is not from this mend" in mend.reason
    git(bench.folder, "branch", "-m", f"mend/{feedback}", "theirs")
    assert bench.mend(feedback).state == "published"


@pytest.mark.slow
def test_a_test_that_is_red_on_the_merged_commit_verifies_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.commit("by-hand", files(FAULT, "true", tmp_path / "c"))
    feedback = bench.file(FAULT.said)
    published = bench.mend(feedback, branch="by-hand")
    bench.merge(f"mend/{feedback}")
    git(bench.folder, "checkout", "-q", "HEAD^1", "--", "shop")
    git(bench.folder, "commit", "-q", "-m", "Take it back by accident")
    mend = bench.mend(feedback)
    assert (mend.state, mend.waits_for) == ("published", "person")
    assert "these do not pass: test_last_item.py::test_last_item" in mend.reason
    assert bench.log.feedback.get(feedback).state == "fix-pr-open"
    git(bench.folder, "revert", "--no-edit", "HEAD")
    assert (bench.mend(feedback, merged="main").state, published.id) == ("closed", mend.id)


def test_two_at_once_work_on_one_mend_in_turn(bench: Bench) -> None:
    mending = bench.mending
    mend = mending.find_or_begin(bench.file("Something else"))
    with mending._locked(mend.id), pytest.raises(Exception, match="another process works on mend"):
        bench.mending.advance(mend.id, FixInput())
    with pytest.raises(Conflict):
        bench.log.mends.move(mend, reason="a")
        bench.log.mends.move(mend, reason="b")


def test_after_it_was_published_another_fix_can_take_its_place(bench: Bench, tmp_path: Path) -> None:
    feedback = bench.file("It is still wrong")
    mend = bench.mending.find_or_begin(feedback)
    bench.log.feedback.triage(feedback, "tool")
    bench.log.feedback.start_fix(feedback)
    bench.log.feedback.open_pr(feedback, "branch mend/x")
    bench.log.mends.move(mend, MendState.PUBLISHED, head=mend.base, waits_for=MendWait.PERSON, reason="red after the merge")
    again = bench.mend(feedback, branch="main")
    assert (again.state, again.waits_for, again.reason) == ("fixing", "fix", "main has nothing beyond the base")
    assert bench.log.feedback.get(feedback).state == "in-fix"
    other = make_repository(tmp_path / "elsewhere", {"a": ""})
    with pytest.raises(Conflict, match="belongs to another repository"):
        Bench(bench.log, other).mend(mend.id)
