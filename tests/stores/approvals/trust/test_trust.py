import base64
import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from decklog import Conflict, Denied, Invalid, NotFound, Refused
from decklog.stores.approvals.trust.signatures import fingerprint, is_signed, public_key_of, sign
from tests.stores.approvals.trust.trust_desk import Desk, Key

# What an owner does


def test_a_log_without_an_owner_asks_for_one_and_is_at_tier_0(desk: Desk) -> None:
    shown = desk.trust.show()
    assert (shown["is_bound"], shown["tier"]) == (False, 0)
    assert "owner" in shown["question"]
    assert desk.trust.may("read_file")["allowed"]
    assert not desk.trust.may("write_file")["allowed"]
    assert not desk.trust.recognises("ana")


def test_a_bound_log_shows_its_owner(desk: Desk, keys: dict[str, Key]) -> None:
    contract = desk.trust.bind("@ana", " gh-comment ", keys["owner"].public + " ana@desk", persona_name="Deck")
    assert (contract.handle, contract.channel, contract.tier) == ("ana", "gh-comment", 0)
    assert contract.public_key == keys["owner"].public
    shown = desk.trust.show()
    assert (shown["owner"], shown["persona_name"], shown["is_bound"]) == ("ana", "Deck", True)
    assert shown["fingerprint"] == fingerprint(keys["owner"].public)
    assert shown["log_id"].startswith("log_")


@pytest.mark.parametrize(
    "bad",
    [
        {"handle": ""},
        {"handle": "an a"},
        {"handle": "аna"},  # the first letter is Cyrillic
        {"handle": "ana\u200b"},
        {"channel": " "},
        {"public_key": "ssh-ed25519"},
        {"public_key": "ssh-ed25519 not-base64"},
        {"public_key": "ssh-ed25519 " + base64.b64encode(b"short").decode()},
        {"public_key": ""},
    ],
)
def test_a_bad_owner_is_refused(desk: Desk, keys: dict[str, Key], bad: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        desk.trust.bind(**{"handle": "ana", "channel": "cli", "public_key": keys["owner"].public, **bad})
    assert not desk.trust.show()["is_bound"]


@pytest.mark.slow
def test_a_key_whose_letters_look_like_a_token_is_kept_as_it_is(desk: Desk) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAb/" + "AKC" + "dUZHheAQvp32LwuBcVP6ealv58yM3ZUOxCIPO"
    assert desk.trust.bind("ana", "cli", key).public_key == key
    assert desk.trust.show()["is_bound"]
    assert desk.log.journal.verify().ok


def test_only_ed25519_keys_are_bound(desk: Desk, keys: dict[str, Key]) -> None:
    with pytest.raises(Invalid, match="ed25519"):
        desk.trust.bind("ana", "cli", keys["rsa"].public)


def test_each_step_up_takes_the_owners_signature(desk: Desk) -> None:
    desk.bind()
    for tier in range(1, 6):
        statement = desk.trust.propose("promote", f"ready for {tier}", to_tier=tier).statement
        assert desk.tier() == tier - 1
        assert desk.trust.apply(statement, desk.sign(statement)).tier == tier
    history = desk.trust.history()
    assert [(change.kind, change.from_tier, change.to_tier) for change in history] == [
        ("bind", 0, 0),
        ("promote", 0, 1),
        ("promote", 1, 2),
        ("promote", 2, 3),
        ("promote", 3, 4),
        ("promote", 4, 5),
    ]
    assert history[-1].reason == "ready for 5"
    assert desk.trust.show()["last_promotion"]["to_tier"] == 5
    assert desk.refusals() == 0
    assert desk.log.journal.verify().ok


def test_a_statement_names_all_that_the_signature_is_for(desk: Desk) -> None:
    desk.bind()
    proposal = desk.trust.propose("promote", "good work", expires_in_seconds=1800, by="developer")
    said = json.loads(proposal.statement)
    assert said["log"] == desk.trust.show()["log_id"]
    assert (said["change"], said["tier_before"], said["tier_after"]) == ("promote", 0, 1)
    assert (said["owner"], said["nonce"], said["reason"]) == ("ana", proposal.nonce, "good work")
    assert said["expires_at"] == "2026-01-01T00:30:00.000000Z"
    assert proposal.statement == json.dumps(said, sort_keys=True, separators=(",", ":"))


def test_a_key_with_a_passphrase_signs_when_it_is_given(desk: Desk, keys: dict[str, Key]) -> None:
    desk.bind("locked")
    statement = desk.trust.propose("promote", "good work").statement
    with pytest.raises(Denied, match="passphrase"):
        sign(statement, keys["locked"].path)
    with pytest.raises(Denied, match="passphrase"):
        sign(statement, keys["locked"].path, "wrong")
    signature = sign(statement, keys["locked"].path, "open " + "sesame")
    assert desk.trust.apply(statement, signature).tier == 1


def test_a_key_made_by_ssh_keygen_signs(desk: Desk, tmp_path: Path) -> None:
    import shutil
    import subprocess

    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen is not installed")
    path = tmp_path / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, stdin=subprocess.DEVNULL)
    desk.trust.bind("ana", "cli", path.with_suffix(".pub").read_text())
    statement = desk.trust.propose("promote", "good work").statement
    assert desk.trust.apply(statement, sign(statement, str(path))).tier == 1
    listed = subprocess.run(["ssh-keygen", "-l", "-f", str(path)], check=True, capture_output=True, text=True)
    assert desk.trust.show()["fingerprint"] in listed.stdout


def test_signing_names_what_is_wrong_with_a_key_file(keys: dict[str, Key], tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        sign("{}", str(tmp_path / "nothing"))
    (tmp_path / "text").write_text("hello")
    with pytest.raises(Invalid, match="not an OpenSSH"):
        sign("{}", str(tmp_path / "text"))
    with pytest.raises(Invalid, match="ed25519"):
        sign("{}", keys["rsa"].path)


def test_a_statement_may_be_signed_as_a_document(keys: dict[str, Key]) -> None:
    signature = sign({"b": 1, "a": 2}, keys["owner"].path)
    assert is_signed('{"a":2,"b":1}', signature, keys["owner"].public)
    assert public_key_of(keys["owner"].public + " some comment") == keys["owner"].public


def test_demotion_acts_at_once_and_takes_dev_mode_and_auto_merge_along(desk: Desk) -> None:
    desk.bind()
    desk.promote(4)
    for change, more in (("dev-mode", {"is_on": True}), ("auto-merge", {"fix_classes": ["doc", "test"]})):
        statement = desk.trust.propose(change, "trusted", **more).statement
        desk.trust.apply(statement, desk.sign(statement))
    assert desk.trust.may("edit_own_source")["allowed"]
    assert desk.trust.may("auto_merge", fix_class="doc")["allowed"]
    assert not desk.trust.may("auto_merge", fix_class="tool")["allowed"]
    demoted = desk.trust.demote(reason="broke the build", by="guard")
    assert (demoted.tier, demoted.is_dev_mode, demoted.auto_merge) == (3, False, [])
    assert desk.trust.demote(to_tier=0).tier == 0
    shown = desk.trust.show()["last_demotion"]
    assert (shown["from_tier"], shown["to_tier"], shown["reason"]) == (3, 0, "no reason given")
    assert desk.log.journal.verify().ok


def test_at_tier_0_there_is_nothing_to_demote(desk: Desk) -> None:
    with pytest.raises(Conflict):
        desk.trust.demote()
    desk.bind()
    with pytest.raises(Conflict):
        desk.trust.demote()
    assert [change.kind for change in desk.trust.history()] == ["bind"]


def test_dev_mode_goes_off_without_a_signature(desk: Desk) -> None:
    desk.bind()
    desk.promote(4)
    statement = desk.trust.propose("dev-mode", "for the refactoring", is_on=True).statement
    assert desk.trust.apply(statement, desk.sign(statement)).is_dev_mode
    assert not desk.trust.stop_dev_mode(reason="done").is_dev_mode
    assert desk.trust.stop_dev_mode().already
    assert not desk.trust.may("edit_own_source")["allowed"]


def test_a_hand_over_changes_whose_signature_counts(desk: Desk, keys: dict[str, Key]) -> None:
    desk.bind()
    statement = desk.trust.propose(
        "hand-over", "new team", handle="Ben", channel="email", public_key=keys["next"].public
    ).statement
    contract = desk.trust.apply(statement, desk.sign(statement))
    assert (contract.handle, contract.channel, contract.public_key) == ("Ben", "email", keys["next"].public)
    assert desk.trust.recognises("ben")
    assert not desk.trust.recognises("ana")
    promotion = desk.trust.propose("promote", "first week").statement
    assert desk.trust.apply(promotion, desk.sign(promotion, "next")).tier == 1


def test_reviewers_are_recognised_beside_the_owner(desk: Desk) -> None:
    desk.bind()
    statement = desk.trust.propose("reviewers", "they know the parser", reviewers=["cleo", "@Dan"]).statement
    desk.trust.apply(statement, desk.sign(statement))
    assert [desk.trust.recognises(handle) for handle in ("ana", "@ANA", "Cleo", "dan", "mallory")] == [
        True,
        True,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("trick", ["аna", "ana\u200b", "ａｎａ", "an\u0061\u0300", "", "ana ana", "cleoK"])
def test_a_handle_that_only_looks_like_the_owners_is_a_stranger(desk: Desk, trick: str) -> None:
    desk.bind()
    assert not desk.trust.recognises(trick)


# What each tier permits

EXPECTED = {
    "read_file": 0,
    "list_files": 0,
    "search_code": 0,
    "git_status": 0,
    "git_log": 0,
    "run_tests": 0,
    "write_scratch": 1,
    "write_file": 2,
    "edit_file": 2,
    "run_cli_command": 2,
    "git_push": 2,
    "open_pr": 2,
    "open_issue": 2,
    "fix_ci": 3,
    "merge_pr": 5,
    "release": 5,
}


def granted(desk: Desk, action: str) -> str:
    """Have the owner grant an approval for an action."""
    run = desk.log.runs.start("Have it approved", run_id="asked")
    asked = desk.log.approvals.ask(run.id, f"May it {action}?", about=action, subject=action, by="agent")
    with desk.proving():
        return desk.log.approvals.decide(asked.id, "granted", by="ana").id


@pytest.mark.slow
def test_no_repository_edit_below_2_and_no_merge_below_5(desk: Desk) -> None:
    desk.bind()
    approvals = {action: granted(desk, action) for action in EXPECTED}
    for tier in range(6):
        for action, needed in EXPECTED.items():
            answer = desk.trust.may(action)
            assert answer["allowed"] == (tier >= needed and not answer["needs_approval"]), (action, tier)
            assert (answer["tier"], answer["needed"]) == (tier, needed)
            with nullcontext() if tier >= needed else pytest.raises(Refused):
                assert desk.trust.permit(action, approval_id=approvals[action])["allowed"]
        assert not desk.trust.may("push_main")["allowed"]
        assert not desk.trust.may("merge_into_main")["allowed"]
        if tier < 5:
            desk.promote()


@pytest.mark.parametrize("action", ["release", "merge_pr", "force_push", "delete_test", "bump_version"])
def test_sensitive_actions_need_an_approval_at_every_tier(desk: Desk, action: str) -> None:
    desk.bind()
    for tier in range(6):
        answer = desk.trust.may(action)
        assert (answer["allowed"], desk.tier()) == (False, tier)
        if tier < 5:
            desk.promote()
    assert answer["needs_approval"]
    assert "approval" in answer["reason"]
    for wrong in (None, "ok-anything", granted(desk, "something else")):
        with pytest.raises(Refused, match="always needs an approval"):
            desk.trust.permit(action, approval_id=wrong)


@pytest.mark.parametrize("action", ["release", "force_push"])
def test_an_approval_of_an_action_permits_it_once(desk: Desk, action: str) -> None:
    desk.bind()
    approval = granted(desk, action)
    with pytest.raises(Refused, match="needs tier"):
        desk.trust.permit(action, approval_id=approval)
    desk.promote(5)
    # What was refused for another reason has used nothing up.
    assert desk.trust.permit(action, approval_id=approval)["approval_id"] == approval
    assert desk.log.approvals.get(approval).uses == 1
    with pytest.raises(Refused, match="always needs an approval"):
        desk.trust.permit(action, approval_id=approval)


def test_an_action_that_needs_no_approval_uses_none_up(desk: Desk) -> None:
    desk.bind()
    approval = granted(desk, "read_file")
    assert desk.trust.permit("read_file", approval_id=approval)["allowed"]
    assert not desk.log.approvals.get(approval).uses


@pytest.mark.parametrize("action", ["", "reboot", "write_", "git_", "READ_FILE", "read_file ", "merge", "promote"])
def test_an_unknown_action_is_not_permitted(desk: Desk, action: str) -> None:
    desk.bind()
    desk.promote(5)
    answer = desk.trust.may(action)
    assert (answer["allowed"], answer["needed"]) == (False, None)


def test_a_tier_is_explained(desk: Desk) -> None:
    names = [desk.trust.explain(tier)["name"] for tier in range(6)]
    assert names[0] == "Read-only observer"
    assert names[5] == "Trusted integrator"
    two, three = desk.trust.explain(2), desk.trust.explain(3)
    assert set(two["may"]) < set(three["may"])
    assert "merge_pr" in two["may_not_yet"]
    assert "push_main" in two["never"]
    with pytest.raises(Invalid):
        desk.trust.explain(6)


# The record


def test_proposals_are_those_that_can_still_be_signed(desk: Desk) -> None:
    assert list(desk.trust.proposals()) == []
    desk.bind()
    desk.trust.propose("promote", "soon over", expires_in_seconds=60)
    desk.clock.advance(seconds=61)
    first = desk.trust.propose("promote", "good work")
    desk.clock.advance(seconds=1)
    other = desk.trust.propose("reviewers", "more eyes", reviewers=["bo"])
    assert [one.nonce for one in desk.trust.proposals()] == [first.nonce, other.nonce]
    desk.trust.apply(first.statement, desk.sign(first.statement))
    # The other was written for the contract as it was before.
    assert list(desk.trust.proposals()) == []
