"""Reading in a process of its own."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from decklog import Invalid, Unavailable
from decklog.importing import reading_ahead
from decklog.importing.reading_ahead import WORTH_A_PROCESS, Balance, read
from tests.waiting import wait_until

MANY = 70_000
CORES = len(os.sched_getaffinity(0))
needs_two = pytest.mark.skipif(CORES < 2, reason="a process of its own needs a core of its own")


def numbers(count: int, _: Balance) -> Iterator[tuple[int, int]]:
    for number in range(count):
        yield number, os.getpid()


def numbers_to_the_end(path: str, balance: Balance) -> Iterator[tuple[int, int]]:
    # More parts than a pipe holds signs, and fewer bytes than wait to be sent.
    yield from numbers(MANY, balance)
    Path(path).touch()


def fails(count: int, balance: Balance) -> Iterator[object]:
    yield from numbers(count, balance)
    raise Invalid("this line is too long", field="body")


def is_killed(count: int, balance: Balance) -> Iterator[object]:
    yield from numbers(count, balance)
    os.kill(os.getpid(), signal.SIGKILL)


def shares(count: int, balance: Balance) -> Iterator[tuple[float, str]]:
    for _ in range(count):
        # So long that the pipe holds no second one.
        yield balance.share, "x" * 800_000


def test_little_is_read_where_it_is_written() -> None:
    assert list(read(numbers, 3, WORTH_A_PROCESS - 1)) == [(number, os.getpid()) for number in range(3)]


@needs_two
def test_much_is_read_in_another_process_in_its_order() -> None:
    found = list(read(numbers, 2000, WORTH_A_PROCESS))
    assert [number for number, _ in found] == list(range(2000))
    assert {process for _, process in found} != {os.getpid()}


@needs_two
def test_the_folder_that_it_is_called_in_has_no_modules_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pickle.py").write_text("raise SystemExit('this is not ours')")
    (tmp_path / "decklog").mkdir()
    (tmp_path / "decklog" / "__init__.py").write_text("raise SystemExit('nor is this')")
    monkeypatch.chdir(tmp_path)
    assert len(list(read(numbers, 100, WORTH_A_PROCESS))) == 100


@needs_two
def test_what_goes_wrong_there_is_told_here_after_what_was_read() -> None:
    found: list[object] = []
    with pytest.raises(Invalid, match="this line is too long") as told:
        _take(read(fails, 2, WORTH_A_PROCESS), found)
    assert len(found) == 2
    assert told.value.details == {"field": "body"}


@needs_two
def test_a_reader_that_is_killed_is_missed() -> None:
    found: list[object] = []
    with pytest.raises(Unavailable, match="ended before it had read all"):
        _take(read(is_killed, 2, WORTH_A_PROCESS), found)
    assert len(found) == 2


@needs_two
def test_a_reader_that_is_killed_before_it_was_asked_is_missed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # It ends without having read what it is asked, which is more than the pipe holds.
    monkeypatch.setattr(f"{reading_ahead.__name__}.sys.executable", "/bin/true")
    with pytest.raises(Unavailable, match="ended before it had read all"):
        next(read(numbers, "x" * 200_000, WORTH_A_PROCESS))


@needs_two
def test_whoever_stops_listening_leaves_no_process_behind() -> None:
    parts = read(numbers, 10**6, WORTH_A_PROCESS)
    _, process = next(parts)
    parts.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@needs_two
@pytest.mark.parametrize(("waiting", "share"), [(1, 1.0), (0, 0.2)])
def test_the_reader_is_told_whether_the_writer_waits(monkeypatch: pytest.MonkeyPatch, waiting: int, share: float) -> None:
    monkeypatch.setattr(reading_ahead, "_waiting", lambda _: waiting)
    *_, (last, _) = read(shares, 30, WORTH_A_PROCESS)
    assert last == pytest.approx(share)


@needs_two
def test_a_reader_that_has_read_all_is_not_waited_for_to_listen(tmp_path: Path) -> None:
    found, ended = list[object](), tmp_path / "ended"

    def take() -> None:
        parts = read(numbers_to_the_end, str(ended), WORTH_A_PROCESS)
        found.append(next(parts))
        wait_until(ended.exists)
        found.extend(parts)

    taking = Thread(target=take, daemon=True)
    taking.start()
    taking.join(60)
    assert len(found) == MANY


def test_the_one_who_waits_takes_more_of_the_work() -> None:
    balance = Balance(0.5)
    balance.adjust(is_writer_behind=False)
    assert balance.share < 0.5
    for _ in range(40):
        balance.adjust(is_writer_behind=True)
    assert balance.share == 1
    for _ in range(40):
        balance.adjust(is_writer_behind=False)
    assert 0 < balance.share < 0.5
    assert sum(balance.is_mine() for _ in range(100)) == pytest.approx(100 * balance.share, abs=1)


def _take(parts: Iterator[object], found: list[object]) -> None:
    for part in parts:
        found.append(part)
