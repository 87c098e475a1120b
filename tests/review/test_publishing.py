"""Nothing that the gate holds is handed to others: not by a push, not by a request to merge it, in whatever words."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from decklog import Decklog, Review, Toolbox, Unrestricted
from decklog.core.errors import Conflict, Invalid, Refused
from decklog.guard.policy import examine
from decklog.hooks.judging import block_reason, find_gate_refusal
from decklog.hooks.proxy.guarding import ProxyGuard
from decklog.review.change import Change, between
from decklog.review.publishing import push_block_reason, request_override
from decklog.review.result import Severity
from tests.conductor.repositories import git
from tests.every import every
from tests.review.changes import GOOD, SETTINGS, Desk, rules_of_stage_4

PUSHES = [
    "git push",
    "git push origin change",
    "git push -u origin HEAD:refs/heads/feature",
    "git push origin change:feature other:gone",
    "git push --force-with-lease origin +change",
    "git push --all origin",
    "git -C . push origin change",
    "bash -c 'git push origin change'",
    "cd sub && git push origin change",
    "true; (git push origin change)",
    "git p''ush origin change",
    "g=git; $g push origin change",
    "git push origin change main",
    "git push origin tag v1",
    'git push origin "$BRANCH"',
    "gh pr create --title x --body y",
    "gh pr create --head me:change --fill",
    "glab mr create --source-branch change",
    "git commit -m x --allow-empty && git push origin change",
]
HARMLESS = [
    "git push --dry-run origin change",
    "git push origin --delete old",
    "git push origin :old",
    "git push origin main",
    "git status",
    "echo git push",
    "gh pr view 3",
]


# What leaves by other words than the name of a branch.
ALL_SENT = [
    "git push origin --tags",
    "git push origin --mirror",
    "git push origin :",
    "git push origin +:",
    "git push origin 'refs/tags/*:refs/tags/*'",
    "git push origin 'refs/heads/*'",
    "git -c push.default=matching push origin",
    "git push origin refs/tags/v1",
    "git push origin v1^{tree}:refs/tags/tree",
    "git push origin :v1 file",
]


@pytest.fixture
def change(desk: Desk) -> Change:
    (desk.folder / "sub").mkdir()
    found = desk.commit({**GOOD, "sub/x.txt": "x\n"})
    git(desk.folder, "tag", "v1")
    git(desk.folder, "branch", "-f", "other", "change")
    return found


def recorded(desk: Desk, change: Change, verdict: str, **given: Any) -> Review:
    """Put a verdict on record, as a gate does."""
    from decklog.review.gate import load_settings

    run_id = desk.log.runs.start("Review").id
    facts = {"base": change.base, "head": change.head, "tree": change.tree, "patch": change.patch}
    return desk.log.reviews.record(run_id, verdict, **{"settings": load_settings(change).digest, **facts, **given})  # type: ignore[arg-type]


def reason(desk: Desk, command: "str | list[str]", log: Decklog | None = None) -> str | None:
    _, published = examine(command, root=str(desk.folder))
    return push_block_reason(log or desk.log, published, root=str(desk.folder), state=desk.folder.parent / "state")


@pytest.mark.slow
@every("command", PUSHES)
def test_what_was_not_reviewed_is_held_in_whatever_words(desk: Desk, change: Change, command: str) -> None:
    assert reason(desk, command), command


@every("command", HARMLESS)
def test_what_hands_nothing_on_is_let_go(desk: Desk, change: Change, command: str) -> None:
    assert reason(desk, command) is None, command


@pytest.mark.slow
@every("command", ALL_SENT)
def test_every_commit_and_tag_that_a_push_sends_is_judged(desk: Desk, change: Change, command: str) -> None:
    # HEAD has nothing that is not published; the branch and the tag have.
    git(desk.folder, "tag", "-f", "file", "change:calc.py")
    git(desk.folder, "checkout", "-q", "main")
    assert reason(desk, command), command


@pytest.mark.slow
@every("setting", ["push.default=matching", "remote.origin.push=refs/heads/*", "remote.origin.mirror=true"])
def test_a_push_without_words_is_judged_by_the_settings(desk: Desk, change: Change, setting: str) -> None:
    git(desk.folder, "checkout", "-q", "main")
    name, _, value = setting.partition("=")
    git(desk.folder, "config", name, value)
    assert reason(desk, "git push origin"), setting
    git(desk.folder, "config", "--unset-all", name)
    assert reason(desk, "git push origin") is None


@pytest.mark.slow
def test_a_commit_that_a_later_one_undoes_is_not_covered_by_the_review_of_the_sum(desk: Desk, change: Change) -> None:
    recorded(desk, change, "pass")
    assert reason(desk, "git push origin change") is None
    secret = "AKIA" + "Q7RM4XKWZ2VPTJ5N"
    (desk.folder / "notes.txt").write_text(f"key {secret}\n", encoding="utf-8")
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-q", "-m", "Notes")
    git(desk.folder, "rm", "-q", "notes.txt")
    git(desk.folder, "commit", "-q", "-m", "No notes")
    assert "was not reviewed" in str(reason(desk, "git push origin change"))
    whole = between(desk.repository, "main..change")
    assert (whole.tree, whole.patch) == (change.tree, change.patch)
    (found,) = [one for one in rules_of_stage_4(whole).findings if one.kind == "secret"]
    assert (found.severity, found.file, "which is published too" in found.text) == (Severity.BLOCKING, "notes.txt", True)
    # Only a review of this very head counts.
    recorded(desk, whole, "pass")
    assert reason(desk, "git push origin change") is None


def test_the_reason_counts_the_lines_of_agents_that_were_not_reviewed(desk: Desk, change: Change) -> None:
    names = [one.path for one in change.paths]
    blobs = [git(desk.folder, "rev-parse", f"change:{name}").strip() for name in names]
    [root] = git(desk.folder, "rev-list", "--max-parents=0", "change").split()
    assert "by agents" not in str(reason(desk, "git push origin change"))
    for name, blob in zip(names, blobs, strict=True):
        desk.log.edits.record(root, name, new_blob=blob, session="claude:1", head=change.base)
    assert f" ({len(change.added)} lines by agents) was not reviewed" in str(reason(desk, "git push origin change"))


def test_commits_that_change_nothing_in_sum_are_held(desk: Desk) -> None:
    git(desk.folder, "checkout", "-q", "-b", "change", "main")
    git(desk.folder, "commit", "-q", "--allow-empty", "-m", "Build again")
    assert reason(desk, "git push origin change") is None
    (desk.folder / "notes.txt").write_text("x\n", encoding="utf-8")
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-q", "-m", "Notes")
    git(desk.folder, "rm", "-q", "notes.txt")
    git(desk.folder, "commit", "-q", "-m", "No notes")
    assert "cancel each other out" in str(reason(desk, "git push origin change"))


def test_a_merge_that_takes_nothing_is_held_and_found(desk: Desk, change: Change) -> None:
    recorded(desk, change, "pass")
    git(desk.folder, "checkout", "-q", "-b", "side", "main")
    (desk.folder / "side.txt").write_text("x\n", encoding="utf-8")
    git(desk.folder, "add", "-A")
    git(desk.folder, "commit", "-q", "-m", "Side")
    git(desk.folder, "checkout", "-q", "change")
    git(desk.folder, "merge", "-q", "-s", "ours", "-m", "Merge", "side")
    assert "was not reviewed" in str(reason(desk, "git push origin change"))
    whole = between(desk.repository, "main..change")
    assert [one.severity for one in rules_of_stage_4(whole).findings if one.kind == "discarded-commits"] == [Severity.BLOCKING]


def test_the_messages_that_leave_are_searched_for_secrets(desk: Desk, change: Change) -> None:
    secret = "AKIA" + "Q7RM4XKWZ2VPTJ5N"
    recorded(desk, change, "pass")
    git(desk.folder, "tag", "-f", "-a", "-m", f"key {secret}", "v1")
    assert "message of tag v1" in str(reason(desk, "git push origin v1"))
    git(desk.folder, "commit", "-q", "--amend", "-m", f"Multiply with {secret}")
    assert "has a secret" in str(reason(desk, "git push origin change"))


@pytest.mark.parametrize(
    "command",
    [
        "git fetch . HEAD:refs/remotes/origin/main",
        "git fetch . +HEAD:remotes/origin/main",
        "git pull . HEAD:refs/remotes/origin/main",
        "git push . HEAD:refs/remotes/origin/main",
        "git fetch . HEAD:refs/replace/0123",
        "git fetch . HEAD:$(cat ref)",
        "git update-ref refs/remotes/origin/main HEAD",
        "git update-ref --stdin < refs.txt",
        "git symbolic-ref refs/remotes/origin/HEAD refs/heads/change",
        "git replace HEAD HEAD~1",
        "git config remote.origin.fetch +refs/heads/change:refs/remotes/origin/main",
        "git send-pack origin change",
        "git subtree push --prefix=sub origin change",
    ],
)
def test_nothing_moves_the_base_or_publishes_past_the_gate(command: str) -> None:
    assert examine(command)[0].decision == "deny"


@pytest.mark.slow
def test_only_block_and_unproven_hold_and_the_newest_word_counts(desk: Desk, change: Change) -> None:
    for verdict, is_held in (("block", True), ("pass", False), ("unproven", True), ("request-changes", False)):
        recorded(desk, change, verdict)
        assert (reason(desk, "git push origin change") is not None) is is_held, verdict
    assert reason(desk, ["git", "push", "origin", "change"]) is None
    assert reason(desk, "git push origin $BRANCH")
    assert reason(desk, "git commit -m x --allow-empty && git push origin change")


@pytest.mark.slow
def test_a_verdict_is_for_one_tree_one_patch_and_the_rules_of_the_base(desk: Desk, change: Change) -> None:
    recorded(desk, change, "pass")
    recorded(desk, change, "pass", tree="0" * 40)
    (desk.folder / "calc.py").write_text(GOOD["calc.py"] + "\n", encoding="utf-8")
    git(desk.folder, "commit", "-q", "-a", "-m", "One byte more")
    assert "was not reviewed" in str(reason(desk, "git push origin change"))
    git(desk.folder, "reset", "-q", "--hard", change.head)
    assert reason(desk, "git push origin change") is None
    recorded(desk, change, "pass", settings="other rules")
    assert "was not reviewed" in str(reason(desk, "git push origin change"))


WRONG = {
    "no TOML": SETTINGS + "[[[",
    "an unknown setting": SETTINGS.replace("[review]\n", "[review]\nbse = 1\n"),
    "a model that can't be": SETTINGS + "\n[models.mine]\ncommand = []\n",
    "an unknown sandbox": SETTINGS + '\n[run]\nsandbox = "fort"\n',
    "a base that is not there": SETTINGS.replace('base = "main"', 'base = "develop"'),
}


@pytest.mark.slow
@every("wrong", WRONG)
def test_a_gate_whose_settings_are_wrong_lets_nothing_go(desk: Desk, wrong: str) -> None:
    desk.settle(WRONG[wrong])
    desk.commit(GOOD)
    assert "can't be looked up" in str(reason(desk, "git push origin change")), wrong


def test_a_branch_that_begins_with_itself_does_not_get_around_the_gate(desk: Desk, change: Change) -> None:
    git(desk.folder, "checkout", "-q", "--orphan", "alone")
    git(desk.folder, "commit", "-q", "-m", "All of it")
    assert "no commit in common" in str(reason(desk, "git push origin alone"))


def test_a_repository_without_a_gate_is_left_alone(desk: Desk) -> None:
    desk.settle(SETTINGS.replace('[review]\nbase = "main"\n', ""))
    desk.commit(GOOD)
    assert reason(desk, "git push origin change") is None
    git(desk.folder, "checkout", "-q", "--orphan", "alone")
    git(desk.folder, "commit", "-q", "-m", "All of it")
    assert reason(desk, "git push origin alone") is None


def test_a_person_lets_exactly_this_pass_with_a_reason_and_nothing_else(desk: Desk, change: Change) -> None:
    review = recorded(desk, change, "block")
    question = request_override(desk.log, review, by="dev-1")
    told = {"rule": "review", "reason": f"the verdict of the gate on tree {review.tree[:12]} is block"}
    assert desk.log.approvals.show(question)["cause"] == told
    assert reason(desk, "git push origin change")
    for nothing in (None, "  "):
        with pytest.raises(Invalid, match="needs a reason") as refused:
            desk.log.approvals.decide(question, "granted", by="ana", rationale=nothing)  # type: ignore[arg-type]
        assert f"decide {question} granted --by NAME --rationale WHY" in str(refused.value.hint)
    assert reason(desk, "git push origin change"), "a yes without a reason is none"
    # It is still open: the same question takes a yes with one.
    desk.log.approvals.decide(question, "granted", by="ana", rationale="The finding is about a test's data")  # type: ignore[arg-type]
    assert reason(desk, "git push origin change") is None
    later = recorded(desk, change, "unproven")
    assert reason(desk, "git push origin change"), "another verdict is another question"
    with pytest.raises(Conflict, match="does not block"):
        request_override(desk.log, recorded(desk, change, "pass"), by="dev-1")
    assert later.verdict.holds


def test_where_an_owner_is_bound_only_the_owners_proof_counts(desk: Desk, change: Change) -> None:
    desk.log.trust.bind("ana", "cli", password="correct horse")  # type: ignore[call-arg]
    review = recorded(desk, change, "block")
    question = request_override(desk.log, review, by="dev-1")
    with desk.log.proving(password="correct horse"):
        desk.log.approvals.decide(question, "granted", by="ana", rationale="I looked at it")  # type: ignore[arg-type]
    assert reason(desk, "git push origin change") is None


def test_a_hook_holds_a_push_and_lets_it_go_once_it_is_reviewed(
    desk: Desk, change: Change, sqlite_target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECKLOG_DB", sqlite_target)
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.folder.parent / "state"))
    told = {"tool_name": "Bash", "tool_input": {"command": "git push origin change"}, "cwd": str(desk.folder)}
    assert "was not reviewed" in str(block_reason(told, str(desk.folder)))
    recorded(desk, change, "pass")
    assert block_reason(told, str(desk.folder)) is None
    monkeypatch.setenv("DECKLOG_DB", str(desk.folder.parent / "nowhere.db"))
    assert "no log with its reviews" in str(block_reason(told, str(desk.folder)))


def test_a_permission_that_an_agent_asks_for_by_the_protocol_meets_the_gate_too(
    desk: Desk, change: Change, sqlite_target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DECKLOG_DB", sqlite_target)
    monkeypatch.setenv("XDG_STATE_HOME", str(desk.folder.parent / "state"))
    call = {"toolCallId": "c1", "kind": "execute", "rawInput": {"command": "git push origin change"}}
    asked = {"method": "session/request_permission", "params": {"sessionId": "s1", "toolCall": call}}
    decision, why, _ = ProxyGuard().decision(asked, str(desk.folder))
    assert (decision, "was not reviewed" in why) == ("deny", True)
    recorded(desk, change, "pass")
    assert ProxyGuard().decision(asked, str(desk.folder))[0] != "deny"


def test_the_guarded_tools_hold_a_push_and_nothing_reaches_the_remote(desk: Desk, change: Change, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    git(desk.folder, "init", "-q", "--bare", str(remote))
    git(desk.folder, "remote", "add", "backup", str(remote))
    run_id = desk.log.runs.start("Publish").id
    given: dict[str, Any] = {"root": desk.folder, "trust": Unrestricted(), "state": tmp_path / "processes"}
    command = {"command": ["git", "push", "backup", "change"]}
    with Toolbox(desk.log, run_id, gate=partial(find_gate_refusal, log=desk.log), **given) as box:
        with pytest.raises(Refused, match="was not reviewed"):
            box.call("run", command)
        assert git(remote, "for-each-ref") == ""
        (entry,) = (one for one in desk.log.journal.find(run_id) if one.subtype == "run")
        assert json.loads(json.dumps(entry.payload))["guard"]["rule"] == "review"
    assert os.path.isdir(remote)
