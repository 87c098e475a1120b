"""The second opinion: values that no rule ties to a secret's name, judged by what stands around them."""

import json
import random
import time
from hashlib import sha256
from importlib.resources import files

import pytest

from decklog.redact import clean_among, may_hold_secret, redact, scan
from decklog.redact.learned import judge
from decklog.redact.learned.evidence import Context, Tongue, evidence
from decklog.redact.learned.family import FAMILY, families
from decklog.redact.learned.kinds import kind_of
from decklog.redact.learned.pieces import near_family
from decklog.redact.view import Found, plain
from tests.redact import learn
from tests.redact.batches import rounds, strangers
from tests.redact.hostile import texts
from tests.searches import FULL

_MARK = "[redacted:likely]"
_CHOSEN = "Walnut" + "58!meadow"
_TABLE = json.loads(files("decklog.redact.learned").joinpath("weights.json").read_text(encoding="utf-8"))


def _likely(text: str) -> list[str]:
    view = plain(text)
    return [text[start:end] for start, end, _ in judge.find(view)]


@pytest.mark.parametrize(
    "text",
    [
        "the vault opens with {} and the password is nowhere else",
        "login: ana, then type {} as the password",
        "temporary password │ {} │ until Friday",
    ],
)
def test_a_value_that_somebody_chose_is_likely_a_secret_beside_the_word_for_one(text: str) -> None:
    assert _likely(text.format(_CHOSEN)) == [_CHOSEN]


@pytest.mark.parametrize(
    "text",
    [
        "the password was reset in version 2.14.3 of the server",
        "public key fingerprint 3f2a9c0d1e4b5a697887766554433221",
        "token_count = len(tokens4) + offset12",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8: rotate the api key",
        "see docs/guides/passwords-2024.md for the password policy",
    ],
)
def test_names_versions_digests_and_files_are_left_alone(text: str) -> None:
    assert _likely(text) == []


def test_what_a_rule_takes_is_not_judged() -> None:
    text = f"the vault opens with {_CHOSEN} and the password is nowhere else"
    start = text.index(_CHOSEN)
    assert list(judge.find(plain(text), [Found(start + 2, start + 5, "password")])) == []
    assert list(judge.find(plain(text), [Found(0, 4, "password")])) != []


def test_what_is_taken_is_told_from_what_lies_beside_it() -> None:
    taken = judge.together([Found(8, 12, ""), Found(2, 4, ""), Found(10, 15, "")])
    assert taken == [2, 4, 8, 15]
    dice = random.Random(5)
    for _ in range(300):
        start = dice.randrange(20)
        end = start + dice.randrange(1, 6)
        within = any(start < last and end > first for first, last in ((2, 4), (8, 15)))
        assert judge.is_taken(taken, start, end) == within


def test_a_secret_far_from_any_word_for_one_is_not_judged() -> None:
    assert _likely(f"it is {_CHOSEN}\n\n\n\n\n\n\nthe password is nowhere else") == []


def test_a_number_in_json_stays_one() -> None:
    assert _likely(json.dumps({"pin": 4711, "recovery code": [123456, 654321], "unlock code": 987654})) == []
    assert _likely("SIM unlock code is 987654") == ["987654"]


def test_what_was_redacted_speaks_for_nothing() -> None:
    once = redact(f"password={_CHOSEN}\nwidget A17bQ")
    assert redact(once) == once
    assert once.endswith("widget A17bQ")


def test_many_texts_at_once_and_each_alone_are_judged_the_same() -> None:
    cases = [case.text for name in ("thirteenth", "sixteenth") for case in rounds.secrets(name, 5)]
    cases += list(strangers.harmless("sixth"))[:200]
    cases += [f"{text}\n{'x ' * 2_100}{other}" for text, other in zip(cases[:20], cases[20:40], strict=True)]
    clean = clean_among(cases)
    assert clean == {text for text in cases if not scan(text)[1]}
    assert all(may_hold_secret(text) for text in cases if text not in clean)


def test_whatever_is_judged_a_secret_passes_the_first_look() -> None:
    found = 0
    for name in ("third", "fifth"):
        for case in list(strangers.secrets(name, 7))[:250]:
            view = plain(case.text)
            # By the judge alone, as if there were no rule that took it before.
            if any(judge.find(view)):
                found += 1
                assert may_hold_secret(case.text), case.text
    assert found > 100


def test_a_line_full_of_values_is_judged_in_part() -> None:
    line = "password " + " ".join(f"w{number}Xy" for number in range(60))
    assert [len(piece.values()) for piece in near_family(line, line.encode())] == [16]
    # Of a long one, what stands near the word.
    assert len(list(near_family("key 1a " + "ab1 " * 1_000, b"key 1a " + b"ab1 " * 1_000))) == 1


@pytest.mark.parametrize("name", ["flags", "random passwords", "quoted pairs", "short lines"])
def test_hostile_texts_are_cut_into_pieces_of_bounded_length(name: str) -> None:
    text = "password\n" + texts(20_000)[name]
    pieces = list(near_family(text, text.encode()))
    assert pieces
    assert all(len(piece.text) <= 400 and len(piece.values()) <= 16 for piece in pieces)
    assert sum(len(piece.text) for piece in pieces) <= len(text)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("4711", "digits4"),
        ("3f2a9c0d1e4b5a697887766554433221", "hex32"),
        ("2024-05-01", "date"),
        ("v1.2.3", "version"),
        ("user_name_2", "snake"),
        ("getUserName", "camel"),
        ("mail.example.org", "host"),
        ("src/decklog/app.py", "file"),
        ("abcd efgh ijkl mnop", "groups"),
        ("one two three", "phrase"),
        ("Walnut" + "58!meadow", "signed0"),
        ("aB3" + "dE5fG7hI9", "alnum3"),
    ],
)
def test_a_value_is_called_what_it_looks_like(value: str, kind: str) -> None:
    assert kind_of(value) == kind


@pytest.mark.parametrize("part", ["1", "A", "aA", "a1", "A1", "a_", "a-", "a.", "1.", "/", "é"])
def test_no_value_takes_long_to_be_called_something(part: str) -> None:
    started = time.process_time()
    for value in (part * 60, "x" + part * 60, f"x{part * 60}-!", f"{part * 60}\u2026"):
        kind_of(value)
        families(value)
    # Each takes some microseconds; one whose runs are tried in every way there is would take years.
    assert time.process_time() - started < 1


def test_the_words_of_the_family_are_found_as_by_trying_each_at_every_letter() -> None:
    lines = [case.text for case in list(strangers.secrets("fifth", 3))[:150]]
    lines += [
        "Пароль и ключ",
        "mật khẩu",
        "HASŁO hasło",
        "to\u212aen pa\u017fsword",
        "Clé, CÓDIGO; SchlÜssel",
        "keys okeyed pin spin",
    ]
    assert [[word.span() for word in families(line)] for line in lines] == [
        [word.span() for word in FAMILY.finditer(line)] for line in lines
    ]


def test_the_table_says_what_it_was_learned_from_and_is_small() -> None:
    path = files("decklog.redact.learned").joinpath("weights.json")
    assert len(path.read_bytes()) < 60_000
    batches = _TABLE["learned_from"]["secrets_and_harmless"]
    assert {f"own-{name}" for name in rounds.ROUNDS} <= set(batches)
    assert sum(secrets for secrets, _ in batches.values()) > 8_000
    weights = [int(weight) for weight, names in _TABLE["weights"].items() for _ in names]
    assert min(weights) < 0 < max(weights)
    assert len(weights) <= 3_300


def test_learning_twice_gives_the_same_table_and_what_it_teaches_is_heard() -> None:
    words = [*("harbor", "meadow", "walnut", "copper"), *("reset", "again", "later", "soon")]
    told = [(f"the password of {word} is {word}{number}Xq!", f"{word}{number}Xq!") for number, word in enumerate(words, 40)]
    harmless = [f"the password of {word} was changed in build {word}{number}" for number, word in enumerate(words, 40)]
    examples = {"small": learn.Batch(told, harmless)}
    table = learn.learn(examples, ["plain words of a program\n" * 20])
    assert table == learn.learn(examples, ["plain words of a program\n" * 20])
    weights = learn.judge_of(table, 0)
    assert learn.replaced(weights, "the password of orchard is orchard77Xq!") == f"the password of orchard is {_MARK}"
    assert learn.replaced(weights, "the password of orchard was changed in build orchard77").endswith("orchard77")


def test_evidence_of_the_same_value_is_the_same_every_time() -> None:
    speech = Tongue(_TABLE["pairs"], _TABLE["words"].split())
    text = f"the vault opens with {_CHOSEN} and the password is nowhere else"
    first, second = (
        [evidence(Context(piece), value, speech) for piece in near_family(text, text.encode()) for value in piece.values()]
        for _ in range(2)
    )
    assert first == second != []


@pytest.mark.skipif(not FULL, reason="learns anew, which takes half a minute")
def test_a_batch_that_was_left_out_is_judged_well_without_any_rule() -> None:
    examples = learn.batches([])
    left_out = {f"own-{name}" for name in ("fourteenth", "fifteenth", "sixteenth")}
    table = learn.learn({name: batch for name, batch in examples.items() if name not in left_out}, learn.sources())
    secrets = [pair for name in left_out for pair in examples[name].secrets]
    batch = learn.Batch(secrets, [text for name in left_out for text in examples[name].harmless])
    missed, changed = learn.measured(table, batch, _TABLE["enough"] / 10)
    assert missed < len(batch.secrets) * 0.5
    assert changed <= len(batch.harmless) * 0.05


def test_a_list_of_digests_stays_whatever_stands_far_from_it() -> None:
    digests = [sha256(str(number).encode()).hexdigest() for number in range(200)]
    text = json.dumps({"changes": digests, "key": "SHA256:abc", "operation": "load"}, separators=(",", ":"))
    assert scan(text) == (text, False)
    assert scan(text.replace(",", ",\n")) == (text.replace(",", ",\n"), False)
