"""What the measurements of tasks rest on: that their floor is sound, that they count right, and that their large log is real."""

from pathlib import Path

import pytest
from benchmarks import measure
from benchmarks.children import Crew
from benchmarks.task_crowd import Crowd, crowd
from benchmarks.task_floor import Floor
from benchmarks.task_scale import Model

from decklog import Decklog


def test_a_part_renews_its_own_figures_and_leaves_the_rest_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    one = measure.row("one", 1234.5, "per s", floor=500.0, target=">= 2")
    two = measure.row("two", 0.0, "tasks", target="<= 0")
    measure.write("page", "A page", [one, two], ["with care"])
    before = (tmp_path / "page.md").read_text()
    measure.renew("page", "A page", [])
    assert (tmp_path / "page.md").read_text() == before
    measure.renew("page", "A page", [measure.row("two", 3.0, "tasks", target="<= 0"), measure.row("three", 1.0, "")])
    after = (tmp_path / "page.md").read_text()
    assert after == before.replace(
        "| two | 0.0 tasks |  |  |  | <= 0 | yes |",
        "| two | 3.0 tasks |  |  |  | <= 0 | **no** |\n| three | 1.0  |  |  |  |  |  |",
    )


def test_the_floor_gives_every_task_once(tmp_path: Path) -> None:
    floor = Floor(tmp_path / "floor.db")
    floor.fill(3)
    claimed = [floor.claim() for _ in range(4)]
    assert claimed == [1, 2, 3, None]
    floor.finish(1)
    with pytest.raises(RuntimeError, match="not running"):
        floor.finish(1)
    floor.close()


def test_a_crowd_counts_what_was_claimed_twice_and_what_was_lost() -> None:
    found = Crowd()
    found.wanted = 5
    found.add(10.0, [{"tasks": [1, 2, 3], "worst": 0.5, "ended": 12.0}, {"tasks": [3], "worst": 0.1, "ended": 11.0}])
    assert (found.doubles, found.lost, found.share, found.worst, found.rate) == (1, 2, 0.5, 0.5, 1.5)


def test_a_turn_counts_what_was_done_in_time_and_one_that_ran_dry_counts_nothing() -> None:
    found = Crowd()
    turn = {"tasks": [1, 2, 3, 4], "in_time": 3, "dry": False, "worst": 0.1, "ended": 99.0}
    found.add(10.0, [turn], seconds=0.5)
    found.add(11.0, [turn | {"tasks": [5], "in_time": 1, "dry": True}], seconds=0.5)
    assert found.rates == [6.0]
    assert found.claimed.total() == 5


@pytest.mark.slow
@pytest.mark.parametrize("way", ["raw", "ours", "fused"])
def test_processes_drain_a_queue_together(tmp_path: Path, way: str) -> None:
    found = Crowd()
    crowd(way, str(tmp_path / "queue.db"), 20, found, processes=2)
    assert (found.doubles, found.lost) == (0, 0)


def test_a_child_that_fails_is_not_taken_for_one_that_had_nothing_to_do(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="reported nothing"):
        Crew("benchmarks.task_crowd", [("no such way", str(tmp_path / "queue.db"), "w")])


def test_tasks_made_after_a_model_are_what_the_verb_would_have_written(tmp_path: Path) -> None:
    with Decklog.open(tmp_path / "log.db") as log:
        run_id = log.runs.start("grow").id
        Model(log, run_id).grow(30)
        added = log.tasks.add(run_id, "task 7", priority=7)
        assert log.journal.verify().ok
        made = next(task for task in log.tasks.find(run_id, limit=50) if task.title == "task 7")
        own = {"id", "created_at", "updated_at"}
        assert {name: value for name, value in made.as_dict().items() if name not in own} == {
            name: value for name, value in added.as_dict().items() if name not in own
        }
        claim = log.tasks.claim(run_id, worker="w")
        assert claim is not None
        assert claim.task.title == "task 0"
