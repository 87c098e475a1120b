"""A manager's way from a proposal to a promotion, at the command line."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.cli.conftest import Program

WORD = "open" + "-sesame"


@pytest.fixture
def bound(decklog: Program, log_folder: Path) -> Path:
    """A log with a manager, whose key lies beside it, locked with a passphrase."""
    key = Ed25519PrivateKey.generate()
    locked = serialization.BestAvailableEncryption(WORD.encode())
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, locked)
    (log_folder / "key").write_bytes(private)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert decklog("trust", "bind", "ana", "cli", public.decode()).code == 0
    return log_folder


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


def test_a_statement_is_applied_from_its_text_too(decklog: Program, bound: Path) -> None:
    statement = decklog("trust", "propose", "promote", "good work", "--json").data["statement"]
    signed = decklog("trust", "sign", "--key", "key", "--json", stdin=statement, DECKLOG_PASSPHRASE=WORD).data["signature"]
    assert decklog("trust", "apply", statement, signed).code == 0


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
