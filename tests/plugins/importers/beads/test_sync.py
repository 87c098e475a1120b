"""A run and a file of beads', kept in step."""

import json
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog, ManualClock
from decklog.importing.sync import SyncReport
from decklog.plugins.importers.beads import BeadsImport, BeadsSync
from tests.conftest import on_both
from tests.plugins.importers.beads.beads_files import issue, issues, needs
from tests.plugins.importers.claims import fresh, run_killed


def _sync(log: Decklog, path: Path, **settings: Any) -> SyncReport:
    return BeadsSync(log, str(path), run_id="beads", **settings).run()


def _write(path: Path, *issues: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in issues))
    return path


def _there(path: Path) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in map(json.loads, path.read_text().splitlines())}


def _edit(path: Path, name: str, **fields: Any) -> None:
    """Change an issue as somebody does who does not know of us; its time may even go back."""
    found = _there(path)
    found[name].update(fields)
    _write(path, *found.values())


@pytest.fixture
def file(tmp_path: Path, log: Decklog) -> Path:
    """Give a file that is in step with the log."""
    path = _write(tmp_path / "issues.jsonl", issue("bd-1", labels=["a"]), issue("bd-2", dependencies=[needs("bd-2", "bd-1")]))
    _sync(log, path)
    return path


@on_both
def test_each_side_gets_what_the_other_changed(log: Decklog, file: Path, clock: ManualClock) -> None:
    clock.advance(seconds=60)
    _edit(file, "bd-1", title="Renamed there", labels=["a", "there"])
    log.tasks.edit("bd-1", reason="urgent", priority=90, tags=["a", "here"])
    log.tasks.edit("bd-2", reason="clearer", objective="Said here")

    done = _sync(log, file)

    assert (done.taken, done.given, done.disputed) == (["bd-1"], ["bd-1", "bd-2"], [])
    here, there = log.tasks.get("bd-1"), _there(file)
    assert (here.title, here.priority, set(here.tags)) == ("Renamed there", 90, {"a", "here", "there"})
    assert (there["bd-1"]["title"], there["bd-1"]["priority"]) == ("Renamed there", 0)
    assert set(there["bd-1"]["labels"]) == {"a", "here", "there"}
    assert there["bd-2"]["description"] == "Said here"
    assert log.journal.verify().ok


def test_a_second_sync_changes_nothing(log: Decklog, file: Path) -> None:
    log.tasks.edit("bd-1", reason="urgent", priority=90)
    _sync(log, file)
    heads, text = log.journal.heads(), file.read_text()

    done = _sync(log, file)

    assert (done.taken, done.given, done.disputed) == ([], [], [])
    assert (log.journal.heads(), file.read_text()) == (heads, text)


@on_both
def test_what_both_changed_is_put_to_a_person_and_stays_on_both_sides(log: Decklog, file: Path) -> None:
    _edit(file, "bd-1", title="Theirs")
    log.tasks.edit("bd-1", reason="mine", title="Ours")

    first, second = _sync(log, file), _sync(log, file)

    [dispute] = first.disputed
    assert (dispute["field"], dispute["here"], dispute["there"]) == ("title", "Ours", "Theirs")
    assert second.disputed == first.disputed
    assert (log.tasks.get("bd-1").title, _there(file)["bd-1"]["title"]) == ("Ours", "Theirs")
    [message] = log.inbox.find()
    assert "Ours" in message.body
    assert "Theirs" in message.body
    assert message.task_id == "bd-1"


def test_a_dispute_is_over_when_both_say_the_same(log: Decklog, file: Path) -> None:
    _edit(file, "bd-1", title="Theirs")
    log.tasks.edit("bd-1", reason="mine", title="Ours")
    _sync(log, file)
    log.tasks.edit("bd-1", reason="theirs is better", title="Theirs")
    assert _sync(log, file).disputed == []

    _edit(file, "bd-1", title="Changed again")
    done = _sync(log, file)

    assert (done.taken, done.disputed) == (["bd-1"], [])
    assert log.tasks.get("bd-1").title == "Changed again"


def test_new_work_comes_to_the_other_side(log: Decklog, file: Path) -> None:
    _write(file, *_there(file).values(), issue("bd-3", title="New there"))
    mine = log.tasks.add("beads", "New here", depends_on=["bd-1"])
    log.tasks.comment("bd-1", "Said here", author="ana")

    _sync(log, file)
    done = _sync(log, file)

    there = _there(file)
    assert log.tasks.get("bd-3").title == "New there"
    assert there[mine.id]["title"] == "New here"
    assert there[mine.id]["dependencies"][0]["depends_on_id"] == "bd-1"
    assert [one["text"] for one in there["bd-1"]["comments"]] == ["Said here"]
    assert [one.body for one in log.tasks.comments("bd-1")] == ["Said here"]
    assert (done.taken, done.given) == ([], [])


def test_what_was_said_here_and_written_there_is_not_imported_as_said_twice(log: Decklog, file: Path) -> None:
    log.tasks.comment("bd-1", "Said here", author="ana")
    _sync(log, file)

    BeadsImport(log, str(file), run_id="beads").run()

    assert [one.body for one in log.tasks.comments("bd-1")] == ["Said here"]


def test_a_link_that_is_taken_off_on_one_side_is_taken_off_on_the_other(log: Decklog, file: Path) -> None:
    _edit(file, "bd-2", dependencies=[])
    _sync(log, file)
    assert log.tasks.dependencies("bd-2") == []

    log.tasks.depend("bd-2", "bd-1")
    _sync(log, file)
    assert [one["depends_on_id"] for one in _there(file)["bd-2"]["dependencies"]] == ["bd-1"]

    log.tasks.undepend("bd-2", "bd-1", reason="not needed")
    _sync(log, file)
    assert "dependencies" not in _there(file)["bd-2"]


def test_what_is_done_on_one_side_is_done_on_the_other(log: Decklog, file: Path) -> None:
    claim = log.tasks.claim("beads", worker="ana")
    assert claim is not None
    _sync(log, file)
    assert _there(file)["bd-1"]["status"] == "in_progress"
    log.tasks.finish(claim.id, fence=claim.fence, summary="It works")

    _edit(file, "bd-2", status="closed", close_reason="Not needed")
    _sync(log, file)

    assert (_there(file)["bd-1"]["status"], _there(file)["bd-1"]["close_reason"]) == ("closed", "It works")
    assert log.tasks.get("bd-2").state == "done"


def test_what_there_has_no_finer_words_for_stays_as_it_is_here(log: Decklog, file: Path) -> None:
    log.tasks.edit("bd-1", reason="a bit more urgent", priority=55)
    log.tasks.pause("bd-1", reason="wait for the release")
    _sync(log, file)
    _edit(file, "bd-1", title="Renamed there")

    _sync(log, file)

    task = log.tasks.get("bd-1")
    assert (task.title, task.priority, task.state, task.reason) == ("Renamed there", 55, "paused", "wait for the release")


def test_what_is_gone_there_stays_here_and_is_not_written_again(log: Decklog, file: Path) -> None:
    _write(file, _there(file)["bd-1"])

    done = _sync(log, file)

    assert done.gone == ["bd-2"]
    assert log.tasks.get("bd-2").state == "pending"
    assert list(_there(file)) == ["bd-1"]


def test_lines_that_are_no_issues_stay_as_they_are(log: Decklog, file: Path) -> None:
    memory = '{"_type": "memory", "key": "build", "value": "make"}\n'
    file.write_text("{broken\n" + memory + file.read_text())
    log.tasks.edit("bd-1", reason="urgent", priority=90)

    _sync(log, file)

    assert file.read_text().startswith("{broken\n" + memory)


def test_a_secret_there_stays_there_and_is_no_dispute(log: Decklog, file: Path) -> None:
    secret = "ghp_" + "Zk3" * 12
    _edit(file, "bd-1", description=f"Use {secret} to log in")
    _sync(log, file)
    log.tasks.edit("bd-1", reason="urgent", priority=90)

    done = _sync(log, file)

    assert done.disputed == []
    assert secret in _there(file)["bd-1"]["description"]
    assert secret not in log.tasks.get("bd-1").objective


def test_a_dry_run_says_what_would_happen_and_changes_nothing(log: Decklog, file: Path) -> None:
    _edit(file, "bd-1", title="Renamed there")
    log.tasks.edit("bd-2", reason="mine", title="Renamed here")
    heads, text = log.journal.heads(), file.read_text()

    done = _sync(log, file, dry_run=True)

    assert (done.taken, done.given) == (["bd-1"], ["bd-2"])
    assert (log.journal.heads(), file.read_text()) == (heads, text)


def test_a_file_with_conflicts_of_gits_is_refused(log: Decklog, file: Path) -> None:
    file.write_text(f"<<<<<<< ours\n{file.read_text()}=======\n>>>>>>> theirs\n")
    with pytest.raises(Conflict, match="resolve them first"):
        _sync(log, file)


def test_a_file_that_somebody_writes_to_meanwhile_is_not_overwritten(
    log: Decklog, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.tasks.edit("bd-1", reason="urgent", priority=90)
    sync = BeadsSync(log, str(file), run_id="beads")
    replace = sync.replace_file

    def beaten(text: str) -> None:
        _edit(file, "bd-2", title="Written meanwhile")
        replace(text)

    monkeypatch.setattr(sync, "replace_file", beaten)
    with pytest.raises(Conflict, match="written to meanwhile"):
        sync.run()

    assert _there(file)["bd-2"]["title"] == "Written meanwhile"
    _sync(log, file)
    assert log.tasks.get("bd-2").title == "Written meanwhile"
    assert _there(file)["bd-1"]["priority"] == 0


# What a sync does outside of itself, in its order: to end before or after any of it is to be killed there.
STEPS = ("take", "give", "_save_base", "_report_conflicts", "replace_file")


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_step_it_comes_to_the_same_end(tmp_path: Path, step: str, after: bool) -> None:
    with fresh(tmp_path, "killed") as log:
        file = _write(tmp_path / "issues.jsonl", issue("bd-1"), issue("bd-2"), issue("bd-3"))
        _sync(log, file)
        _edit(file, "bd-1", title="Theirs")
        _edit(file, "bd-3", title="Theirs too")
        log.tasks.edit("bd-2", reason="mine", title="Ours")
        log.tasks.edit("bd-3", reason="mine", title="Ours too")
        sync = BeadsSync(log, str(file), run_id="beads")
        run_killed(sync, step, after)
        _sync(log, file)

        here = {task.id: task.title for task in log.tasks.find("beads")}
        there = {name: found["title"] for name, found in _there(file).items()}
        assert here == {"bd-1": "Theirs", "bd-2": "Ours", "bd-3": "Ours too"}
        assert there == {"bd-1": "Theirs", "bd-2": "Ours", "bd-3": "Theirs too"}
        assert len(log.inbox.find()) == 1
        assert log.journal.verify().ok


def test_a_file_with_every_field_is_in_step_after_one_sync(log: Decklog, tmp_path: Path) -> None:
    path = _write(tmp_path / "issues.jsonl", *issues())
    text = path.read_text()

    _sync(log, path)
    again = _sync(log, path)

    assert (again.taken, again.given, again.disputed) == ([], [], [])
    assert path.read_text() == text
