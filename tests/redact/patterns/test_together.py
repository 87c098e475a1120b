"""All signs in one look: the same as by RE2, made once, and kept where that is possible."""

import os
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from decklog.redact import engine, finder, nearby
from decklog.redact.patterns import together
from decklog.redact.patterns.pattern import Sign
from decklog.redact.patterns.presence import loosened
from decklog.redact.patterns.together import Together, respelled
from decklog.redact.sentences import told
from tests.redact.batches import strangers
from tests.searches import FULL

SIGNS = {3: r"(?i)tok(?:en|\xe9n)[\s=]\S", 8: r"^[^\s\"]{2,}$", 5: r"a{9}"}


def _made(looked_for: Together, name: str) -> Together:
    made = Together(looked_for.signs, name)
    if made.ask() is None:
        made.make()
    return made


@cache
def made_together() -> Together:
    """Give the look for all signs, made unless somebody has."""
    return _made(engine.TOGETHER, "together")


@cache
def made_above() -> Together:
    """Give the look for what a line tells of the next one, made unless somebody has."""
    return _made(engine.ABOVE, "above")


@cache
def made_told() -> Together:
    """Give the look for the ways in which something is told, made unless somebody has."""
    return _made(engine.TOLD, "told")


@cache
def made_names() -> Together:
    """Give the look for names that something stands beside, made unless somebody has."""
    return _made(engine.NAMES, "names")


@cache
def made_marked() -> Together:
    """Give the look for what marks of providers begin with, made unless somebody has."""
    return _made(finder.MARKED, "marked")


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the folder where tables are kept."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(together, "_FOLDER", str(tmp_path))
    monkeypatch.setattr(together, "_PYTHON", "cpython-311")
    yield tmp_path
    for thread in threading.enumerate():
        if thread.name == "decklog-signs":
            thread.join(60)


def shown_by_re2(signs: dict[int, str], data: bytes) -> set[int]:
    return {number for number, sign in signs.items() if Sign(f"(?m){loosened(sign)}").look(data)}


def test_the_same_signs_are_seen_as_by_re2() -> None:
    looks = {number: Sign(f"(?m){loosened(sign)}").look for number, sign in engine.TOGETHER.signs.items()}
    dice, look, above, names = random.Random(5), made_together().look, made_above().look, made_names().look
    named = Sign(f"(?m){loosened(nearby.NAMES)}").look
    assert look is not None
    assert above is not None
    assert names is not None
    found = [text.encode("latin-1", "replace") for batch in ("third", "sixth") for text in list(strangers.harmless(batch))[::7]]
    found += [case.text.encode("latin-1", "replace") for case in list(strangers.secrets("fifth", strangers.SEED))[::3]]
    found += [b"\x0b\x85\xa0".join(dice.sample(found, 3)) for _ in range(200)]
    found += [one.upper() for one in found[::5]]
    seen = set[int]()
    for data in found:
        shown = set(look(data))
        assert shown == {number for number, sign in looks.items() if sign(data)}, data
        assert bool(above(data)) == told.may_tell_below(data), data
        assert bool(names(data)) == bool(named(data)), data
        seen |= shown
    assert len(seen - set(finder.TOOL_SIGNS)) >= len(looks) - len(finder.TOOL_SIGNS) - 1
    assert len(seen & set(finder.TOOL_SIGNS)) > 9


def test_what_has_the_shape_and_a_name_beside_it_has_a_name() -> None:
    look, named, found = made_names().look, Sign(f"(?m){loosened(nearby.SIGN)}").look, 0
    assert look is not None
    for batch in ("fourth", "fifth"):
        for case in strangers.secrets(batch, strangers.SEED):
            data = case.text.encode("latin-1", "replace")
            if named(data):
                found += 1
                assert look(data), case.text
    assert found > 100


def test_what_may_be_marked_shows_to_tables_as_it_does_to_re2() -> None:
    look, marked = made_marked().look, 0
    assert look is not None
    for case in strangers.secrets("fifth", strangers.SEED):
        data = case.text.encode("latin-1", "replace")
        if finder._PREFIXED.may_match(data) or finder._SHAPED.may_match(data):
            marked += 1
            assert look(data), case.text
    assert marked > 100


@pytest.mark.parametrize("data", [b"TOK\xc9N\x0bx", b"tok\xc9n x", b"Token=\x0b", b"a\x0bb", b"x\nab\n", b'x"', b"aaaa", b"aaa"])
def test_blanks_capitals_and_counts_are_those_of_re2(data: bytes, kept: Path) -> None:
    made = Together(SIGNS)
    made.make()
    assert made.look is not None
    assert set(made.look(data)) == shown_by_re2(SIGNS, data)


def test_a_blank_is_spelled_out_in_a_class_and_beside_one() -> None:
    assert respelled(r"[^x\s]\s[\]\s\\s]\S\\s") == r"[^x\t\n\f\r ][\t\n\f\r ][\]\t\n\f\r \\s][^\t\n\f\r ]\\s"
    with pytest.raises(ValueError, match="no blank"):
        respelled(r"[a\S]")


def test_tables_are_kept_and_taken_up_by_the_next_program(kept: Path) -> None:
    first = Together(SIGNS)
    assert first.ask() is None
    first.make()
    (file,) = kept.iterdir()
    second = Together(SIGNS)
    look = second.ask()
    assert look is not None
    assert look(b'"token=x') == [3]
    other = Together({**SIGNS, 7: "z"})
    assert other.ask() is None, "the tables of other signs"
    damaged = bytearray(file.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    file.write_bytes(damaged)
    assert Together(SIGNS).ask() is None, "tables that are not whole"
    (kept / "together.cpython-399-0123456789abcdef.tables").write_bytes(b"another Python's")
    (kept / f"{file.name}.7").write_bytes(b"half of them, by a program that was killed")
    Together({1: "x"}, "another").make()
    other.make()
    assert len(list(kept.iterdir())) == 3, "those of rules that have changed since"
    assert Together({1: "x"}, "another").ask() is not None
    assert not file.exists()


def test_they_are_made_beside_the_program_once_there_was_enough_to_look_at(kept: Path) -> None:
    made = Together(SIGNS)
    made.ask()
    made.ask(together._MANY - 1)
    assert not any(kept.iterdir())
    made.ask()
    for thread in threading.enumerate():
        if thread.name == "decklog-signs":
            thread.join(60)
    assert made.look is not None
    assert len(list(kept.iterdir())) == 1


def test_where_no_thread_can_be_had_the_look_is_left_to_others(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    made = Together(SIGNS)
    made.ask()
    assert made.ask(together._MANY) is None
    assert made.ask() is None
    assert not any(kept.iterdir())


def test_where_they_cannot_be_kept_more_is_to_be_gained_before_they_are_made(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = Together(SIGNS)
    made.ask()
    made.ask(together._MANY_FOR_ONE - 1)
    assert made.look is None
    made.make()
    assert not any(kept.iterdir())
    assert made.look is not None


def test_without_hyperscan_nothing_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    made = Together(SIGNS)
    assert made.ask() is None
    assert made.ask(10 * together._MANY_FOR_ONE) is None


def test_many_threads_look_at_the_same_time() -> None:
    look = made_together().look
    assert look is not None
    text = ("Wrote the module and its tests. " * 4_000 + "\npassword: x").encode()
    expected, found, looks = look(text), list[bool](), 40 if FULL else 10

    def work() -> None:
        found.extend(look(text) == expected for _ in range(looks))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 6 * looks


def test_a_program_that_ends_while_they_are_made_ends_well(tmp_path: Path) -> None:
    script = (
        "import os, sys\nfrom decklog.redact.patterns import together\n"
        f"together._FOLDER = {str(tmp_path)!r}\ntogether._PYTHON = 'kept'\n"
        "made = together.Together({1: '(?i)token[ =]', 2: 'x{3,40}y'})\nmade.ask()\nmade.ask(together._MANY)\n"
        "child = os.fork()\nif child == 0:\n    made.ask(together._MANY)\n    os._exit(0)\nassert os.waitpid(child, 0)[1] == 0\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=60)
    assert len(list(tmp_path.iterdir())) == 1
