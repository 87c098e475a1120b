"""An owner's way from a proposal to a promotion, at the command line."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.cli.conftest import Program
from tests.stores.approvals.trust.trust_desk import cheaply_locked

WORD = "open" + "-sesame"


@pytest.fixture
def bound(decklog: Program, log_folder: Path) -> Path:
    """A log with an owner, whose key lies beside it, locked with a passphrase."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, cheaply_locked(WORD))
    (log_folder / "key").write_bytes(private)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert decklog("trust", "bind", "ana", "cli", public.decode()).code == 0
    return log_folder


@pytest.mark.slow
@pytest.mark.parametrize("form", ["answer", "statement", "statement with a newline"])
def test_a_proposal_is_signed_and_applied_from_its_file(decklog: Program, bound: Path, form: str) -> None:
    said = decklog("trust", "propose", "promote", "good work", "--json")
    statement = said.data["statement"]
    text = said.out if form == "answer" else statement + ("\n" if "newline" in form else "")
    (bound / "proposal").write_text(text)
    signed = decklog("trust", "sign", "proposal", "--key", "key", "--json", DECKLOG_PASSPHRASE=WORD).data["signature"]
    assert decklog("trust", "apply", "@proposal", signed, "--json").data["tier"] == 1
    again = decklog("trust", "apply", "-", signed, "--json", stdin=text)
    assert again.code == 4
    assert "works once" in json.loads(again.out)["error"]["message"]
    assert decklog("trust", "show", "--json").data["tier"] == 1


@pytest.mark.slow
def test_a_statement_is_applied_from_its_text_too(decklog: Program, bound: Path) -> None:
    statement = decklog("trust", "propose", "promote", "good work", "--json").data["statement"]
    signed = decklog("trust", "sign", "--key", "key", "--json", stdin=statement, DECKLOG_PASSPHRASE=WORD).data["signature"]
    assert decklog("trust", "apply", statement, signed).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "I owe you a coffee", "{}", "[]", '{"data": {}}'])
def test_nothing_but_a_statement_is_signed(decklog: Program, bound: Path, text: str) -> None:
    said = decklog("trust", "sign", "--key", "key", stdin=text, DECKLOG_PASSPHRASE=WORD)
    assert (said.code, said.out) == (1, "")
    assert "no statement" in said.err


def test_a_locked_key_asks_for_nothing_where_nobody_can_answer(decklog: Program, bound: Path) -> None:
    statement = decklog("trust", "propose", "promote", "good work", "--json").data["statement"]
    said = decklog("trust", "sign", "--key", "key", stdin=statement)
    assert said.code == 4
    assert "passphrase" in said.err


@pytest.mark.slow
def test_a_change_is_signed_and_made_by_one_command(decklog: Program, bound: Path) -> None:
    statement = decklog("trust", "propose", "promote", "good work", "--json").data["statement"]
    assert decklog("trust", "apply", statement).code == 4
    applied = decklog("trust", "apply", statement, "--key", "key", "--json", DECKLOG_PASSPHRASE=WORD)
    assert applied.data["tier"] == 1


@pytest.mark.slow
def test_sign_writes_only_the_signature_and_apply_reads_it_from_its_file(decklog: Program, bound: Path) -> None:
    statement = decklog("trust", "propose", "promote", "good work", "--json").data["statement"]
    signed = decklog("trust", "sign", "--key", "key", stdin=statement, DECKLOG_PASSPHRASE=WORD)
    assert len(signed.out.split()) == 1
    (bound / "sig").write_text(signed.out)
    assert decklog("trust", "apply", statement, "@sig", "--json").data["tier"] == 1


def test_what_only_the_owner_does_takes_the_key(decklog: Program, bound: Path) -> None:
    words = ("budgets", "set", "all", "--limit-tokens", "5", "--json")
    refused = decklog(*words)
    assert (refused.code, json.loads(refused.out)["error"]["code"]) == (4, "unproven")
    assert decklog(*words, "--key", "key").code == 4  # the passphrase is missing
    assert decklog(*words, "--key", "key", DECKLOG_PASSPHRASE=WORD).data["is_proven"]
    assert [proof["operation"] for proof in decklog("proofs", "find", "--json").data] == ["budgets.set"]


@pytest.mark.slow
def test_bind_makes_a_key_that_only_its_user_reads(decklog: Program, log_folder: Path) -> None:
    settings = {"XDG_CONFIG_HOME": str(log_folder / "settings")}
    assert decklog("accept", **settings).code == 0
    assert decklog("trust", "bind", "ana", "cli", **settings).code == 2  # nobody can be asked for a passphrase
    said = decklog("trust", "bind", "ana", "cli", DECKLOG_PASSPHRASE=WORD, **settings)
    assert (said.code, len(said.err.splitlines())) == (0, 5)
    key = log_folder / "settings" / "decklog" / "owner_ed25519"
    assert key.stat().st_mode & 0o777 == 0o600
    proven = decklog("budgets", "set", "all", "--limit-tokens", "5", "--key", str(key), "--json", DECKLOG_PASSPHRASE=WORD)
    assert proven.data["is_proven"]


def test_a_password_is_never_asked_for_without_a_terminal(decklog: Program, log_folder: Path) -> None:
    said = decklog("trust", "bind", "ana", "cli", "--password")
    assert (said.code, said.out) == (2, "")
    assert "terminal" in said.err
