"""Reading and waiting inside a transaction: no place in the journal is handed out that may be rolled back."""

from contextlib import suppress

import pytest

from decklog import Decklog, EntryKind, Invalid
from tests.paging import all_pages


class Undone(Exception):
    pass


def test_a_tail_inside_a_transaction_is_refused(log: Decklog, run_id: str) -> None:
    with log.transaction():
        log.journal.append(run_id, "not committed")
        with pytest.raises(Invalid, match="inside a transaction"):
            next(log.journal.tail(run_id, follow=False))


def test_a_tail_misses_nothing_after_a_rollback(log: Decklog, run_id: str) -> None:
    reader = log.journal.tail(run_id, follow=True, timeout_seconds=0.0)
    seqs = [next(reader).seq]
    with suppress(Undone), log.transaction():
        log.journal.append(run_id, "never written")
        with pytest.raises(Invalid):
            next(reader)
        raise Undone
    log.journal.append(run_id, "the real one")
    seen_later = [entry.body for entry in log.journal.tail(run_id, after=seqs[-1], follow=False)]
    assert seen_later == ["the real one"]


@pytest.mark.parametrize("going_on", [False, True])
def test_a_cursor_is_not_given_inside_a_transaction(log: Decklog, run_id: str, going_on: bool) -> None:
    before = log.journal.now(going_on=going_on)
    with suppress(Undone), log.transaction():
        log.journal.append(run_id, "never written")
        with pytest.raises(Invalid, match=r"journal\.now"):
            log.journal.now(going_on=going_on)
        with pytest.raises(Invalid, match=r"journal\.since"):
            log.journal.since(before, going_on=going_on)
        raise Undone
    log.journal.append(run_id, "the real one")
    assert [moved["stream"] for moved in log.journal.since(before, going_on=going_on)["moved"]] == [run_id]


def test_entries_of_a_transaction_are_found_inside_it(log: Decklog, run_id: str) -> None:
    with log.transaction():
        log.journal.append(run_id, "not committed")
        assert [entry.body for entry in log.journal.find(run_id, kind=EntryKind.INTERACTION)] == ["not committed"]


def test_nobody_waits_for_an_answer_inside_a_transaction(log: Decklog, run_id: str) -> None:
    approval_asked = log.approvals.ask(run_id, "Deploy?", by="agent", about="plan")
    answered = log.approvals.ask(run_id, "Merge?", by="agent", about="branch")
    log.approvals.withdraw(answered.id)
    with log.transaction():
        for approval in (approval_asked, answered):
            with pytest.raises(Invalid, match="can't wait inside a transaction"):
                log.approvals.wait(approval.id, 1)
        assert log.approvals.wait(answered.id, 0).state == "withdrawn"


def test_nobody_waits_for_a_task_inside_a_transaction(log: Decklog, run_id: str) -> None:
    log.tasks.add(run_id, "work")
    with log.transaction():
        with pytest.raises(Invalid, match="can't wait inside a transaction"):
            log.tasks.claim(run_id, worker="w", wait_seconds=1)
        assert log.tasks.claim(run_id, worker="w") is not None


def test_cursor_of_an_entry_that_was_rolled_back_is_refused(log: Decklog, run_id: str) -> None:
    with suppress(Undone), log.transaction():
        log.journal.append_many([{"stream": run_id, "body": f"never written {number}"} for number in range(3)])
        page = log.journal.find(run_id, oldest_first=True, limit=3)
        assert [entry.body for entry in log.journal.find(run_id, oldest_first=True, after=page.next)] == ["never written 2"]
        raise Undone
    log.journal.append_many([{"stream": run_id, "body": f"real {number}"} for number in range(3)])
    with pytest.raises(Invalid, match="rolled back"):
        log.journal.find(run_id, oldest_first=True, after=page.next)


def test_cursor_of_an_entry_that_was_committed_goes_on_after_it(log: Decklog, run_id: str) -> None:
    with log.transaction():
        log.journal.append_many([{"stream": run_id, "body": f"real {number}"} for number in range(3)])
        page = log.journal.find(run_id, oldest_first=True, limit=3)
    assert [entry.body for entry in log.journal.find(run_id, oldest_first=True, after=page.next)] == ["real 2"]


def test_cursor_of_a_history_that_was_rolled_back_is_refused(log: Decklog, run_id: str) -> None:
    task = log.tasks.add(run_id, "work")
    with suppress(Undone), log.transaction():
        for number in range(3):
            log.tasks.edit(task.id, title=f"never {number}", reason="try")
        page = log.journal.history("tasks", task.id, limit=2)
        assert [entry.payload["title"] for entry in log.journal.history("tasks", task.id, after=page.next)] == [
            "never 1",
            "never 2",
        ]
        raise Undone
    for number in range(3):
        log.tasks.edit(task.id, title=f"real {number}", reason="do")
    with pytest.raises(Invalid, match="rolled back"):
        log.journal.history("tasks", task.id, after=page.next)
    history = all_pages(lambda after: log.journal.history("tasks", task.id, limit=1, after=after))
    assert [entry.payload["title"] for entry in history] == ["work", "real 0", "real 1", "real 2"]


@pytest.mark.parametrize("cursor", ["x", "-1-2-3x", "12-", "12-abc"])
def test_cursor_that_no_page_gave_is_refused(log: Decklog, run_id: str, cursor: str) -> None:
    with pytest.raises(Invalid):
        log.journal.find(run_id, after=cursor)
    with pytest.raises(Invalid):
        log.journal.history("runs", run_id, after=cursor)
