"""`decklog top` where an owner is bound: what is decided takes the password or the key, on both engines."""

from pathlib import Path

import pytest

from decklog import Approval, Decklog
from tests.cli.screens import Terminal
from tests.stores.approvals.trust.trust_desk import make_keys
from tests.waiting import wait_until

PASSWORD = "correct " + "horse battery"
PASSPHRASE = "open " + "sesame"


def asked(target: str, **bound: str) -> str:
    """Bind a log to an owner, and ask for something in it."""
    with Decklog.open(target) as log:
        log.runs.start("Teach the parser to read trailing commas", run_id="run_1")
        log.trust.bind("ana", "cli", **bound)  # type: ignore[arg-type]
        return log.approvals.ask("run_1", "Push feature/commas?", by="dev-1", about="git push origin").id


def decided(target: str, approval_id: str) -> Approval:
    with Decklog.open(target) as log:
        assert log.journal.verify().ok
        return log.approvals.get(approval_id)


@pytest.mark.slow
def test_a_password_grants_and_a_wrong_one_decides_nothing(target: str, tmp_path: Path) -> None:
    approval_id = asked(target, password=PASSWORD)
    with Terminal("top", "--db", target, "--seconds", "0.1", cwd=tmp_path, columns=120) as top:
        wait_until(lambda: top.shows("Push feature/commas?"))
        for password, outcome in (("wrong", "Nothing was decided:"), (PASSWORD, "granted by ana")):
            top.press("afine\n")
            wait_until(lambda: top.shows("Password of ana:", "digest matches"))
            top.press(password)
            wait_until(lambda password=password: top.shows("•" * len(password)))  # type: ignore[misc]
            top.press("\n")
            wait_until(lambda outcome=outcome: top.shows(outcome))  # type: ignore[misc]
        assert PASSWORD.encode() not in top.sent
    granted = decided(target, approval_id)
    assert (granted.state, granted.is_proven) == ("granted", True)


@pytest.mark.slow
def test_a_locked_key_is_asked_for_by_its_file_and_its_passphrase(target: str, tmp_path: Path) -> None:
    keys = make_keys(tmp_path)
    approval_id = asked(target, public_key=keys["locked"].public)
    with Terminal("top", "--db", target, "--seconds", "0.1", cwd=tmp_path, columns=200) as top:
        wait_until(lambda: top.shows("Push feature/commas?"))
        for key, passphrase, outcome in (
            (keys["mallory"].path, None, "Nothing was decided:"),
            (keys["locked"].path, "wrong", "Nothing was decided:"),
            (keys["locked"].path, PASSPHRASE, "denied by ana"),
        ):
            top.press("dtoo early\n")
            wait_until(lambda: top.shows("Key file of ana:"))
            top.press(key + "\n")
            if passphrase is not None:
                wait_until(lambda: top.shows("Passphrase of"))
                top.press(passphrase + "\n")
            wait_until(lambda outcome=outcome: top.shows(outcome))  # type: ignore[misc]
        assert PASSPHRASE.encode() not in top.sent
    denied = decided(target, approval_id)
    assert (denied.state, denied.rationale, denied.is_proven) == ("denied", "too early", True)
