"""Values that look like trouble and are none, and the other way round."""

import re
from pathlib import Path
from typing import Any

import pytest

import decklog
from decklog import Decklog, Invalid
from decklog.core.clock import Clock, ManualClock
from decklog.core.ids import Ids, is_ours
from decklog.records.values import Values
from decklog.redaction import scan


@pytest.mark.parametrize("text", ["if c == '\\u0000':", "\\\\u0000", "a\\u0000b \\ud800", "C:\\users", "100% 'quoted' :name ?"])
def test_source_code_about_odd_characters_is_kept_as_it_is(log: Decklog, run_id: str, text: str) -> None:
    entry = log.journal.append(run_id, text, payload={"code": text, text: [text]})
    again = log.journal.get(run_id, entry.seq)
    assert again.body == text
    assert again.payload == {"code": text, text: [text]}
    assert log.journal.verify().ok


@pytest.mark.parametrize("payload", [{"x": "\x00"}, {"\x00": 1}, {"x": ["\\\x00"]}, {"x": "\\\\\x00"}])
def test_a_real_nul_is_refused_wherever_it_hides(log: Decklog, run_id: str, payload: dict[str, object]) -> None:
    with pytest.raises(Invalid, match="NUL"):
        log.journal.append(run_id, payload=payload)


@pytest.mark.parametrize("run_id", ["7f3a-run", "2026-11-15-night", "20261115", "0"])
def test_a_run_whose_id_begins_with_a_digit_can_be_seen_as_of_an_entry(log: Decklog, run_id: str) -> None:
    log.runs.start("x", run_id=run_id)
    log.runs.update(run_id, summary="later")
    assert log.journal.at("runs", run_id, f"{run_id}:1").summary is None
    assert log.journal.at("runs", run_id, f"{run_id}:2").summary == "later"


def test_a_time_is_never_taken_for_an_entry(log: Decklog, run_id: str) -> None:
    for time in ("2026-01-01T00:00", "2026-01-01T00:00:30", "2026-01-01T00:00:30Z", "2026-01-01T00:00:30-01:00", "2027-01-01"):
        assert log.journal.at("runs", run_id, time).goal == "Make the parser faster"


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_a_number_beyond_64_bits_is_refused(log: Decklog, run_id: str, number: int) -> None:
    with pytest.raises(Invalid):
        log.journal.append(run_id, "x", iteration=number)
    assert len(log.journal.find(run_id)) == 1


def _kinds_of_ids() -> set[str]:
    texts = [path.read_text() for path in Path(decklog.__file__).parent.rglob("*.py")]
    return {kind for text in texts for kind in re.findall(r'ids\.(?:new|several)\("(\w+)"', text)}


@pytest.mark.parametrize("kind", sorted(_kinds_of_ids()))
def test_generated_ids_are_recognised_and_not_redacted(kind: str) -> None:
    ids = Ids(Clock())
    for new_id in (ids.new(kind) for _ in range(200)):
        assert is_ours(new_id)
        assert not any(map(is_ours, (new_id[:-1], new_id[:-1] + "u", "other" + new_id)))
        assert scan(new_id) == (new_id, False)


def test_ids_of_a_batch_are_sorted() -> None:
    ids = Ids(ManualClock())
    ids_made = [ids.new("task"), *ids.several("task", 50), ids.new("task"), *ids.several("task", 0)]
    assert ids_made == sorted(set(ids_made))
    assert all(map(is_ours, ids_made))


def test_lookalikes_of_ids_are_scanned(log: Decklog, run_id: str) -> None:
    secret = "ghp" + "_" + "a1B2" * 9
    made = log.tasks.add(run_id, "x").id
    for text in (f"{made} {secret}", f"{made}\n{secret}", f"task_{secret}"):
        entry = log.journal.append(run_id, text, task_id=text)
        assert secret not in f"{entry.body} {entry.task_id}", text


@pytest.mark.parametrize(
    "call_id",
    [
        "toolu_01AbCdEfGh23456789",
        "call:call_9fQz81LmNo",
        "said:msg_01XyZ98765432:2",
        f"prompt:{'0' * 8}-1234-1234-1234-{'a' * 12}",
    ],
)
def test_the_ids_that_programs_give_their_calls_are_no_secrets(call_id: str) -> None:
    assert Values().bind_text("key", call_id) == (call_id, False)
    assert Values().bind_json("payload", {"call": call_id})[1] is False


def test_value_like_an_id_below_a_secret_key_is_redacted() -> None:
    payload = {"password": "msg_" + "aK7" * 8, "call": "toolu_" + "01Ab" * 6}
    text, changed = Values().bind_json("payload", payload)
    assert changed
    assert payload["password"] not in text
    assert payload["call"] in text


def test_secret_bound_twice_is_redacted_twice() -> None:
    values, text = Values(), "the token is " + "ghp_" + "a1B2c3" * 6
    first = values.bind_text("body", text)
    assert values.bind_text("body", text) == first == (scan(text)[0], True)
    assert values.bind_text("body", "another one") == ("another one", False)
    assert values.bind({"body": text}) == ({"body": first[0]}, True)


def test_batch_of_texts_is_redacted_like_single_texts() -> None:
    values, filler = Values(4096), "plain words " * 30
    secret = "ghp_" + "aB3dE5fG7hI9kL1mN2oP4qR6sT8uV0wX2yZ4"
    bodies = [filler, filler + secret, filler + "\x00", filler + "\ud800", filler * 20]
    with values.scan_batch([{"body": body} for body in bodies]):
        assert values.bind_text("body", filler) == (filler, False)
        assert values.bind_text("body", filler + secret) == (filler + "[redacted:github-token]", True)
        for refused in (filler + "\x00", filler + "\ud800", filler * 20):
            with pytest.raises(Invalid):
                values.bind_text("body", refused)


def test_batch_of_json_values_is_redacted_like_single_values() -> None:
    values, secret = Values(), "ghp_" + "aB3dE5fG7hI9kL1mN2oP4qR6sT8uV0wX2yZ4"
    payloads: list[Any] = [
        {"call": "first", "tool": "Bash", "arguments": ["pytest -q"]},
        {"said": ["in a list", secret]},
        {"password": "hunter2hunter2"},
        {secret: "as a name"},
        {"said": "a zero \x00 sign"},
        ["half a pair \ud800"],
    ]
    with values.scan_batch([{"payload": value} for value in payloads]):
        for value in payloads[:4]:
            assert values.bind_json("payload", value) == Values().bind_json("payload", value)
        for refused in payloads[4:]:
            with pytest.raises(Invalid):
                values.bind_json("payload", refused)
        # What is known to be clean is that value, not another one in its place.
        assert values.bind_json("payload", {"call": secret})[1]


def test_changed_json_value_is_scanned_again() -> None:
    values, payload, other = Values(), {"said": "plain"}, {"said": "plain too"}
    secret = "ghp_" + "aB3dE5fG7hI9kL1mN2oP4qR6sT8uV0wX2yZ4"
    with pytest.raises(RuntimeError), values.scan_batch([{"payload": payload}, {"payload": other}]):
        assert values.bind_json("payload", payload) == ('{"said":"plain"}', False)
        payload["said"] = secret
        assert values.bind_json("payload", payload)[1]
        raise RuntimeError
    other["said"] = secret
    assert values.bind_json("payload", other)[1]
