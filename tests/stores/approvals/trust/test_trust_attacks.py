import base64
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from decklog import Decklog, Denied, Invalid, ManualClock
from tests.stores.approvals.trust.trust_desk import Desk, altered
from tests.stores.processes import shared_out

Attack = Callable[[], object]


# What nobody can do without the key. Each attack sets its scene and gives the attempt itself.


def _signed_as(signature_of: Callable[[Desk, str], str]) -> Callable[[Desk], Attack]:
    def attack(desk: Desk) -> Attack:
        statement = desk.proposed()
        signature = signature_of(desk, statement)
        return lambda: desk.trust.apply(statement, signature)

    return attack


def _worded_as(wording_of: Callable[[Desk, str], str], *, resign: bool = False) -> Callable[[Desk], Attack]:
    """Alter a statement; its signature is the old one, or (worse) the owner was made to sign the alteration."""

    def attack(desk: Desk) -> Attack:
        statement = desk.proposed()
        wording = wording_of(desk, statement)
        signature = desk.sign(wording if resign else statement)
        return lambda: desk.trust.apply(wording, signature)

    return attack


def _flipped(desk: Desk, statement: str) -> str:
    raw = bytearray(base64.b64decode(desk.sign(statement)))
    raw[0] ^= 1
    return base64.b64encode(raw).decode()


def _without_purpose(desk: Desk, statement: str) -> str:
    with open(desk.keys["owner"].path, "rb") as file:
        key = serialization.load_ssh_private_key(file.read(), None)
    assert isinstance(key, Ed25519PrivateKey)
    return base64.b64encode(key.sign(statement.encode())).decode()


def _by_rsa(desk: Desk, statement: str) -> str:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    with open(desk.keys["rsa"].path, "rb") as file:
        key = serialization.load_ssh_private_key(file.read(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return base64.b64encode(key.sign(statement.encode(), padding.PKCS1v15(), hashes.SHA256())).decode()


def _replayed(desk: Desk) -> Attack:
    used = desk.promote()
    return lambda: desk.trust.apply(*used)


def _replayed_after_demotion(desk: Desk) -> Attack:
    used = desk.promote()
    desk.trust.demote()
    return lambda: desk.trust.apply(*used)


def _kept_over_a_demotion(desk: Desk) -> Attack:
    desk.promote(2)
    statement = desk.proposed()
    signature = desk.sign(statement)
    desk.trust.demote()
    return lambda: desk.trust.apply(statement, signature)


def _kept_until_the_tier_is_the_same_again(desk: Desk) -> Attack:
    desk.promote()
    statement = desk.proposed()
    signature = desk.sign(statement)
    desk.trust.demote()
    desk.promote()
    return lambda: desk.trust.apply(statement, signature)


def _second_of_two(desk: Desk) -> Attack:
    first, second = desk.proposed(), desk.proposed()
    signed = desk.sign(second)
    desk.trust.apply(first, desk.sign(first))
    return lambda: desk.trust.apply(second, signed)


def _kept_over_a_hand_over(desk: Desk) -> Attack:
    statement = desk.proposed()
    signature = desk.sign(statement)
    _hand_over(desk)
    return lambda: desk.trust.apply(statement, signature)


def _hand_over(desk: Desk) -> None:
    over = desk.trust.propose("hand-over", "x", handle="ben", channel="cli", public_key=desk.keys["next"].public).statement
    desk.trust.apply(over, desk.sign(over))


def _by_the_owner_before(desk: Desk) -> Attack:
    _hand_over(desk)
    statement = desk.proposed()
    return lambda: desk.trust.apply(statement, desk.sign(statement, "owner"))


def _hand_over_signed_by_the_next(desk: Desk) -> Attack:
    key = desk.keys["mallory"]
    statement = desk.trust.propose("hand-over", "x", handle="mallory", channel="cli", public_key=key.public).statement
    return lambda: desk.trust.apply(statement, desk.sign(statement, "mallory"))


def _expired(**late: float) -> Callable[[Desk], Attack]:
    def attack(desk: Desk) -> Attack:
        statement = desk.proposed()
        signature = desk.sign(statement)
        desk.clock.advance(**late)
        return lambda: desk.trust.apply(statement, signature)

    return attack


def _expired_and_prolonged(desk: Desk) -> Attack:
    statement = desk.proposed()
    desk.clock.advance(minutes=61)
    longer = altered(statement, expires_at="2030-01-01T00:00:00.000000Z")
    return lambda: desk.trust.apply(longer, desk.sign(longer))


def _for_another_log(desk: Desk) -> Attack:
    path = Path(desk.keys["owner"].path).parent / f"other-{os.urandom(4).hex()}.db"
    with Decklog.open(str(path), clock=desk.clock) as other:
        other.trust.bind("ana", "gh-comment", desk.keys["owner"].public)
        statement = other.trust.propose("promote", "good work there").statement
    return lambda: desk.trust.apply(statement, desk.sign(statement))


def _nonce_of_another(desk: Desk, statement: str) -> str:
    return altered(statement, nonce=desk.trust.propose("promote", "another").nonce)


def _signature_for_another(desk: Desk, statement: str) -> str:
    return desk.sign(desk.proposed())


def _another_change(desk: Desk) -> Attack:
    harmless = desk.trust.propose("auto-merge", "docs are safe", fix_classes=["doc"]).statement
    changed = altered(harmless, change="promote", terms={"tier": 5}, tier_after=5)
    return lambda: desk.trust.apply(changed, desk.sign(harmless))


def _made_up(desk: Desk, statement: str) -> str:
    return altered(statement, nonce=os.urandom(16).hex(), terms={"tier": 5}, tier_after=5)


def _proposed(**arguments: object) -> Callable[[Desk], Attack]:
    def attack(desk: Desk) -> Attack:
        desk.promote()
        return lambda: desk.trust.propose(reason="please", **{"change": "promote", **arguments})  # type: ignore[arg-type]

    return attack


def _above_the_top(desk: Desk) -> Attack:
    desk.promote(5)
    return lambda: desk.trust.propose("promote", "higher", to_tier=6)


def _bound_again(handle: str, key: str) -> Callable[[Desk], Attack]:
    return lambda desk: lambda: desk.trust.bind(handle, "cli", desk.keys[key].public)


def _demoted_up(to_tier: int) -> Callable[[Desk], Attack]:
    def attack(desk: Desk) -> Attack:
        desk.promote(2)
        return lambda: desk.trust.demote(to_tier=to_tier)

    return attack


def _dev_mode_by_another(desk: Desk) -> Attack:
    statement = desk.trust.propose("dev-mode", "x", is_on=True).statement
    return lambda: desk.trust.apply(statement, desk.sign(statement, "mallory"))


ATTACKS: dict[str, Callable[[Desk], Attack]] = {
    "no signature": _signed_as(lambda _, __: ""),
    "a blank signature": _signed_as(lambda _, __: "  "),
    "words for a signature": _signed_as(lambda _, __: "approved by ana"),
    "the handle for a signature": _signed_as(lambda _, __: "ana"),
    "the public key for a signature": _signed_as(lambda desk, __: desk.keys["owner"].public.split()[1]),
    "letters that are not ASCII": _signed_as(lambda _, __: "ａｎａ" * 20),
    "a NUL in the signature": _signed_as(lambda desk, statement: desk.sign(statement) + "\x00"),
    "half a surrogate pair in the signature": _signed_as(lambda _, __: "\ud800"),
    "a signature of zeros": _signed_as(lambda _, __: base64.b64encode(bytes(64)).decode()),
    "a signature cut short": _signed_as(
        lambda desk, statement: base64.b64encode(base64.b64decode(desk.sign(statement))[:63]).decode()
    ),
    "a signature made longer": _signed_as(
        lambda desk, statement: base64.b64encode(base64.b64decode(desk.sign(statement)) + b"x").decode()
    ),
    "a signature with one bit changed": _signed_as(_flipped),
    "a signature in hex": _signed_as(lambda desk, statement: base64.b64decode(desk.sign(statement)).hex()),
    "a signature by another key": _signed_as(lambda desk, statement: desk.sign(statement, "mallory")),
    "a signature by an RSA key": _signed_as(_by_rsa),
    "a signature of another statement": _signed_as(_signature_for_another),
    "a signature for another purpose": _signed_as(_without_purpose),
    "a statement used before": _replayed,
    "a statement used before a demotion": _replayed_after_demotion,
    "a statement kept over a demotion": _kept_over_a_demotion,
    "a statement kept until the tier is the same again": _kept_until_the_tier_is_the_same_again,
    "the second of two statements for one step": _second_of_two,
    "a statement kept over a hand-over": _kept_over_a_hand_over,
    "a signature by the owner before": _by_the_owner_before,
    "a hand-over signed by the one who takes over": _hand_over_signed_by_the_next,
    "dev mode signed by another": _dev_mode_by_another,
    "an expired statement": _expired(minutes=61),
    "a statement at the very end of its hour": _expired(minutes=60),
    "an expired statement with a later end": _expired_and_prolonged,
    "a statement of another log": _for_another_log,
    "another tier under the old signature": _worded_as(lambda _, s: altered(s, terms={"tier": 5}, tier_after=5)),
    "another tier that was signed too": _worded_as(lambda _, s: altered(s, terms={"tier": 5}, tier_after=5), resign=True),
    "another tier before": _worded_as(lambda _, s: altered(s, tier_before=4, tier_after=5), resign=True),
    "another reason": _worded_as(lambda _, s: altered(s, reason="none"), resign=True),
    "another log's id": _worded_as(lambda _, s: altered(s, log="log_other"), resign=True),
    "another owner's name": _worded_as(lambda _, s: altered(s, owner="mallory"), resign=True),
    "one key more": _worded_as(lambda _, s: altered(s, also={"tier": 5}), resign=True),
    "the same key twice": _worded_as(lambda _, s: s[:-1] + ',"terms":{"tier":5}}', resign=True),
    "blanks in the statement": _worded_as(lambda _, s: s.replace(",", ", "), resign=True),
    "keys in another order": _worded_as(lambda _, s: json.dumps(dict(reversed(json.loads(s).items()))), resign=True),
    "a nonce nobody gave out": _worded_as(_made_up, resign=True),
    "the nonce of another statement": _worded_as(_nonce_of_another, resign=True),
    "a nonce that is a number": _worded_as(lambda _, s: altered(s, nonce=7), resign=True),
    "a nonce that is SQL": _worded_as(lambda _, s: altered(s, nonce="' or '1'='1"), resign=True),
    "no nonce": _worded_as(lambda _, s: altered(s, nonce=None), resign=True),
    "a harmless change made a promotion": _another_change,
    "a list for a statement": _worded_as(lambda _, s: f"[{s}]", resign=True),
    "a statement that is not JSON": _worded_as(lambda _, __: "promote me to 5", resign=True),
    "an empty statement": _worded_as(lambda _, __: "", resign=True),
    "a bottomless statement": _worded_as(lambda _, __: "[" * 100_000, resign=True),
    "a statement with a NUL": _worded_as(lambda _, s: s + "\x00", resign=True),
    "a statement with a zero-width blank": _worded_as(lambda _, s: s.replace("ana", "ana\u200b"), resign=True),
    "a statement with half a surrogate pair": _worded_as(lambda _, s: s.replace("ana", "ana\ud800")),
    "a proposal to jump": _proposed(to_tier=5),
    "a proposal to jump by two": _proposed(to_tier=3),
    "a proposal to stay": _proposed(to_tier=1),
    "a promotion downwards": _proposed(to_tier=0),
    "a promotion below the floor": _proposed(to_tier=-1),
    "a promotion above the top": _above_the_top,
    "auto-merge for tools": _proposed(change="auto-merge", fix_classes=["doc", "tool"]),
    "auto-merge for the state machine": _proposed(change="auto-merge", fix_classes=["state-machine"]),
    "a second bind by the same": _bound_again("ana", "owner"),
    "a second bind with another key": _bound_again("ana", "mallory"),
    "a second bind by another": _bound_again("mallory", "mallory"),
    "a second bind in capitals": _bound_again("ANA", "mallory"),
    "a second bind with a lookalike": _bound_again("аna", "mallory"),
    "a second bind with an invisible letter": _bound_again("ana\u200b", "mallory"),
    "a demotion upwards": _demoted_up(5),
    "a demotion to the same tier": _demoted_up(2),
    "a demotion below the floor": _demoted_up(-1),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_nobody_goes_up_without_the_key_and_every_attempt_is_on_record(desk: Desk, name: str) -> None:
    desk.bind()
    attempt = ATTACKS[name](desk)
    before, changes, refusals = desk.trust.show(), desk.trust.history(), desk.refusals()
    with pytest.raises(Denied):
        attempt()
    assert desk.trust.show() == before
    assert desk.trust.history() == changes
    assert desk.refusals() == refusals + 1
    assert desk.log.journal.verify().ok


@pytest.mark.parametrize("verb", ["propose", "apply"])
def test_without_an_owner_nothing_is_proposed_or_applied(desk: Desk, verb: str) -> None:
    with pytest.raises(Denied, match="no owner"):
        if verb == "propose":
            desk.trust.propose("promote", "please")
        else:
            desk.trust.apply("{}", "")
    assert desk.refusals() == 1


def test_a_refused_attempt_says_what_was_tried(desk: Desk) -> None:
    desk.bind()
    with pytest.raises(Denied), desk.log.acting("developer"):
        desk.trust.bind("mallory", "cli", desk.keys["mallory"].public)
    (event,) = desk.log.journal.find("@desk", subtype="trust.refused")
    assert event.agent == "developer"
    assert "bound only once" in event.body
    assert event.payload["asked"]["handle"] == "mallory"


def test_the_table_of_changes_takes_no_step_up_without_a_nonce(desk: Desk) -> None:
    desk.bind()
    with pytest.raises(Invalid), desk.log.transaction():
        desk.log.db.rows("update trust_changes set to_tier = 5", {})


def _apply(target: str, statement: str, signature: str) -> str:
    with Decklog.open(target, clock=ManualClock()) as log:
        try:
            log.trust.apply(statement, signature)
        except Denied:
            return "denied"
        return "applied"


@pytest.mark.slow
def test_of_four_processes_with_one_statement_one_applies_it(desk: Desk, target: str) -> None:
    desk.bind()
    statement = desk.proposed()
    results = shared_out(_apply, [(target, statement, desk.sign(statement))] * 4)
    assert sorted(results) == ["applied", "denied", "denied", "denied"]
    assert desk.tier() == 1
    assert desk.refusals() == 3
    assert desk.log.journal.verify().ok


def _bind(target: str, name: str, key: str) -> str:
    with Decklog.open(target, clock=ManualClock()) as log:
        try:
            return log.trust.bind(name, "cli", key).handle
        except Denied:
            return "denied"


@pytest.mark.slow
def test_of_four_processes_that_bind_at_once_one_is_the_owner(desk: Desk, target: str) -> None:
    key = desk.keys["owner"].public
    results = shared_out(_bind, [(target, f"owner{number}", key) for number in range(4)])
    assert results.count("denied") == 3
    assert desk.trust.show()["owner"] in results
    assert desk.log.journal.verify().ok


@pytest.mark.parametrize(
    "bad",
    [
        {"change": "fire"},
        {"reason": " "},
        {"expires_in_seconds": 0},
        {"expires_in_seconds": 6_000_000},
        {"change": "promote", "is_on": True},
        {"change": "dev-mode"},
        {"change": "hand-over", "handle": "ben"},
        {"change": "hand-over", "handle": "ben", "channel": "cli", "public_key": "ssh-rsa AAAA"},
        {"change": "reviewers", "reviewers": ["not a handle"]},
    ],
)
def test_a_proposal_that_makes_no_sense_is_invalid(desk: Desk, bad: dict[str, object]) -> None:
    desk.bind()
    with pytest.raises(Invalid):
        desk.trust.propose(**{"change": "promote", "reason": "x", **bad})  # type: ignore[arg-type]
