"""Events that wait beside the log: durable, in order, bounded, and known whole from torn."""

import json
import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from decklog.agents import spool as spool_module
from decklog.agents.spool import Spool

CONTEXT = multiprocessing.get_context("spawn")


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(str(tmp_path / "spool"))


def payloads(spool: Spool) -> list[bytes]:
    return [payload for name in spool.list_waiting() for _, payload in spool.read(name)[0]]


def test_events_of_a_session_come_back_in_the_order_they_came(spool: Spool) -> None:
    for number in range(3):
        assert spool.put("claude", "s1", {"session": "s1"}, b'{"n": %d}' % number)
    (name,) = spool.list_waiting()
    lines, end = spool.read(name)
    assert [json.loads(payload)["n"] for _, payload in lines] == [0, 1, 2]
    assert {facts["program"] for facts, _ in lines} == {"claude"}
    spool.remove_lines(name, end)
    assert spool.is_empty


def test_an_event_on_several_lines_stays_one(spool: Spool) -> None:
    spool.put("claude", "s1", {}, b'{\r\n "n":\n 1}\n')
    assert [json.loads(payload) for payload in payloads(spool)] == [{"n": 1}]


def test_what_came_while_others_were_taken_in_is_kept(spool: Spool) -> None:
    spool.put("claude", "s1", {}, b"1")
    (name,) = spool.list_waiting()
    _, end = spool.read(name)
    spool.put("claude", "s1", {}, b"2")
    spool.remove_lines(name, end)
    assert payloads(spool) == [b"2"]


def test_a_full_spool_takes_no_more_and_says_so(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "MOST_BYTES", 200)
    assert spool.put("claude", "s1", {}, b"x" * 50)
    assert not spool.put("claude", "s1", {}, b"y" * 200)
    assert "dropped" in spool.list_waiting()
    assert json.loads((Path(spool.folder) / "dropped").read_bytes())["bytes"] == 200


@pytest.mark.parametrize("session", ["../../elsewhere", "a/b", "", "x" * 5000, "é\n", "\udcff"])
def test_no_name_of_a_session_leads_out_of_the_folder(spool: Spool, session: str) -> None:
    spool.put("claude", session, {}, b"1")
    assert payloads(spool) == [b"1"]
    assert sorted(os.listdir(Path(spool.folder).parent)) == ["spool"]


def test_a_link_in_the_place_of_a_file_is_not_followed(spool: Spool, tmp_path: Path) -> None:
    os.makedirs(spool.folder)
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    os.symlink(victim, os.path.join(spool.folder, "claude-s1.events"))
    with pytest.raises(OSError, match="symbolic link"):
        spool.put("claude", "s1", {}, b"1")
    assert victim.read_bytes() == b""


def test_only_the_user_can_read_what_waits(spool: Spool) -> None:
    spool.put("claude", "s1", {}, b"1")
    (name,) = spool.list_waiting()
    assert os.stat(os.path.join(spool.folder, name)).st_mode & 0o77 == 0
    assert os.stat(spool.folder).st_mode & 0o77 == 0


def put_many(folder: str, who: int, count: int) -> None:
    spool = Spool(folder)
    for number in range(count):
        spool.put("claude", f"s{who % 2}", {}, b"%d %d" % (who, number))


@pytest.mark.slow
def test_processes_that_write_and_one_that_takes_in_lose_nothing(spool: Spool) -> None:
    workers = [CONTEXT.Process(target=put_many, args=(spool.folder, who, 60)) for who in range(4)]
    for worker in workers:
        worker.start()
    taken: list[bytes] = []
    while any(worker.is_alive() for worker in workers) or not spool.is_empty:
        with spool.intake_lock() as is_mine:
            assert is_mine
            for name in spool.list_waiting():
                lines, end = spool.read(name)
                taken += [payload for _, payload in lines]
                spool.remove_lines(name, end)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    for who in range(4):
        own = [int(payload.split()[1]) for payload in taken if payload.split()[0] == b"%d" % who]
        assert own == list(range(60))


def test_several_may_remember_the_same_file_at_once(spool: Spool) -> None:
    def remember(number: int) -> None:
        for place in range(200):
            Spool(spool.folder).set_mark("/x/t.jsonl", {"place": place, "kept": "k" * number * 100})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(remember, range(8)))
    assert spool.mark("/x/t.jsonl")["place"] == 199
    assert [name for name in os.listdir(spool.folder) if not name.endswith(".read")] == []


def test_only_one_takes_in_at_a_time(spool: Spool) -> None:
    with spool.intake_lock() as first, spool.intake_lock() as second:
        assert (first, second) == (True, False)
    with spool.intake_lock() as again:
        assert again


def test_linked_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "log.db-spool").symlink_to(elsewhere)
    with pytest.raises(NotADirectoryError):
        Spool(str(tmp_path / "log.db-spool")).put("claude", "s1", {}, b"{}")
    assert list(elsewhere.iterdir()) == []
