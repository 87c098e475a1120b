"""Claims about effects of tools: made once, remembered, and never lost silently, whoever dies in the middle."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decklog import Conflict, Decklog, Invalid
from decklog.core.errors import Refused, StillPending, TimedOut, TooLarge, Unavailable
from decklog.core.processes import Identity
from decklog.guard import EffectCheck, Tool, Toolbox
from decklog.guard.toolbox.once import effect_key
from decklog.stores.effects.effects import Effect

GONE = json.dumps({**json.loads(Identity.own().as_text()), "pid": 1, "ticks": 1})
ELSEWHERE = json.dumps({**json.loads(Identity.own().as_text()), "boot_id": "other", "host": "other"})
PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+made\n"


def left_behind(log: Decklog, box: Toolbox, tool: str, arguments: dict[str, Any], actor: str = GONE) -> Effect:
    """Write the intent that a process leaves which is killed right after it."""
    call = box._new_call("s1")
    expect = box.tools[tool].expect
    facts = expect(call, arguments) if expect else {}
    return log.effects.intend(box.run_id, "s1", tool, key=effect_key("s1", tool, arguments), actor=actor, facts=facts)


def test_a_repeated_step_gives_the_first_result(box: Toolbox, place: Path) -> None:
    first = box.run("echo x >> log.txt; wc -l < log.txt", step="s1")
    again = box.run("echo x >> log.txt; wc -l < log.txt", step="s1")
    assert again == first
    assert (place / "log.txt").read_text() == "x\n"
    assert box.run("echo x >> log.txt; wc -l < log.txt", step="s2").stdout == "2\n"


def test_an_edit_is_repeated_without_looking_for_its_passage_again(box: Toolbox, place: Path) -> None:
    (place / "a.txt").write_text("old\n")
    arguments = {"path": "a.txt", "old_string": "old", "new_string": "new"}
    first = box.call("edit_file", arguments, step="s1")
    assert box.call("edit_file", arguments, step="s1") == first
    patched = box.call("apply_patch", {"text": PATCH.replace("-old", "-new").replace("+new", "+newer")}, step="s1")
    assert box.call("apply_patch", {"text": PATCH.replace("-old", "-new").replace("+new", "+newer")}, step="s1") == patched


def test_another_toolbox_knows_the_result_too(make_box: Callable[..., Toolbox]) -> None:
    first = make_box().run(["date", "+%N"], step="s1")
    assert make_box().run(["date", "+%N"], step="s1").output == first.output


@pytest.mark.slow
def test_a_step_that_ended_in_an_error_ends_in_it_again(box: Toolbox, place: Path) -> None:
    for _ in range(2):
        with pytest.raises(TimedOut, match=r"ended after 0\.3 seconds"):
            box.run("echo x >> log.txt; sleep 60", timeout_seconds=0.3, step="s1")
    assert (place / "log.txt").read_text() == "x\n"


def test_what_is_refused_before_it_is_done_leaves_no_effect(log: Decklog, run_id: str, box: Toolbox) -> None:
    box.write_file("a.txt", "x")
    with pytest.raises(Invalid):
        box.edit_file("a.txt", "same", "same", step="s1")
    with pytest.raises(Refused):
        box.run("sudo id", step="s1")
    assert log.effects.find(run_id) == []


def test_reading_needs_no_effect(log: Decklog, run_id: str, box: Toolbox) -> None:
    box.write_file("a.txt", "x")
    box.read_file("a.txt", step="s1")
    assert log.effects.find(run_id) == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_file", {"path": "a.txt", "content": "new\n"}),
        ("edit_file", {"path": "a.txt", "old_string": "old", "new_string": "new"}),
        ("apply_patch", {"text": PATCH}),
    ],
)
class TestFilesAfterACrash:
    """The files themselves tell what happened."""

    def test_before_the_act_it_is_done_by_the_next(
        self, log: Decklog, box: Toolbox, place: Path, tool: str, arguments: dict[str, Any]
    ) -> None:
        (place / "a.txt").write_text("old\n")
        effect = left_behind(log, box, tool, arguments)
        box.call(tool, arguments, step="s1")
        settled = log.effects.get(effect.id)
        assert (place / "a.txt").read_text() == "new\n"
        assert (settled.state, settled.attempts) == ("done", 2)

    def test_after_the_act_it_is_not_done_again(
        self, log: Decklog, box: Toolbox, place: Path, tool: str, arguments: dict[str, Any]
    ) -> None:
        (place / "a.txt").write_text("old\n")
        effect = left_behind(log, box, tool, arguments)
        expected = box.call(tool, arguments)
        before = os.stat(place / "a.txt")
        assert box.call(tool, arguments, step="s1") == expected
        settled = log.effects.get(effect.id)
        assert os.stat(place / "a.txt").st_ino == before.st_ino
        assert (settled.state, settled.attempts, settled.reconciled_by) == ("done", 1, tool)

    def test_what_someone_else_changed_is_for_a_person_to_say(
        self, log: Decklog, box: Toolbox, place: Path, tool: str, arguments: dict[str, Any]
    ) -> None:
        (place / "a.txt").write_text("old\n")
        effect = left_behind(log, box, tool, arguments)
        (place / "a.txt").write_text("theirs\n")
        with pytest.raises(Conflict, match="Nobody knows") as caught:
            box.call(tool, arguments, step="s1")
        assert caught.value.details["effect_id"] == effect.id
        assert [one.id for one in log.effects.open(box.run_id)] == [effect.id]
        log.effects.reconcile(effect.id, "yes", by="ana", result=log.effects.get(effect.id).facts["result"])  # type: ignore[arg-type]
        box.call(tool, arguments, step="s1")
        assert (place / "a.txt").read_text() == "theirs\n"


def test_a_command_that_never_began_is_run_by_the_next(log: Decklog, box: Toolbox, place: Path) -> None:
    arguments = {"command": "echo x >> log.txt"}
    effect = left_behind(log, box, "run", arguments)
    box.call("run", arguments, step="s1")
    assert (place / "log.txt").read_text() == "x\n"
    assert log.effects.get(effect.id).attempts == 2


def test_a_command_that_may_have_run_is_for_a_check_or_a_person(log: Decklog, box: Toolbox, place: Path) -> None:
    arguments = {"command": "echo x >> log.txt"}
    effect = left_behind(log, box, "run", arguments)
    Path(str(effect.facts["folder"]), "started.json").write_text("{}")
    with pytest.raises(Conflict, match="Nobody knows") as caught:
        box.call("run", arguments, step="s1")
    assert f"decklog effects reconcile {effect.id}" in (caught.value.hint or "")
    asked = []

    def check(one: Effect) -> EffectCheck:
        asked.append(one.id)
        return EffectCheck(
            True, {"exit_code": 0, "signal": None, "chunks": [], "cut_bytes": 0, "duration_ms": 1, "sandbox": "none"}
        )

    assert box.call("run", arguments, step="s1", check=check).exit_code == 0
    assert asked == [effect.id]
    assert not (place / "log.txt").exists()
    assert log.effects.get(effect.id).reconciled_by == "check"


def test_a_person_says_it_did_not_happen_and_the_next_call_acts(log: Decklog, box: Toolbox, place: Path) -> None:
    arguments = {"command": "echo x >> log.txt"}
    effect = left_behind(log, box, "run", arguments)
    Path(str(effect.facts["folder"]), "started.json").write_text("{}")
    with pytest.raises(Conflict):
        box.call("run", arguments, step="s1")
    log.effects.reconcile(effect.id, "no", by="ana")  # type: ignore[arg-type]
    assert box.call("run", arguments, step="s1").exit_code == 0
    assert (place / "log.txt").read_text() == "x\n"


def test_what_is_being_made_by_another_is_waited_for(log: Decklog, box: Toolbox) -> None:
    arguments = {"command": "echo x >> log.txt"}
    parent = Identity.of(os.getppid())
    assert parent is not None
    left_behind(log, box, "run", arguments, actor=parent.as_text())
    with pytest.raises(StillPending, match="is being done"):
        box.call("run", arguments, step="s1")


def test_an_actor_that_can_not_be_seen_is_never_declared_dead(log: Decklog, box: Toolbox, place: Path) -> None:
    arguments = {"command": "echo x >> log.txt"}
    effect = left_behind(log, box, "run", arguments, actor=ELSEWHERE)
    with pytest.raises(StillPending, match="can't look"):
        box.call("run", arguments, step="s1")
    assert log.effects.get(effect.id).state == "intended"
    log.effects.reconcile(effect.id, "no", by="ana")  # type: ignore[arg-type]
    box.call("run", arguments, step="s1")
    assert (place / "log.txt").read_text() == "x\n"


def test_two_threads_that_make_the_same_step_make_it_once(make_box: Callable[..., Toolbox], place: Path) -> None:
    box = make_box()
    outcomes: list[object] = []

    def make() -> None:
        try:
            outcomes.append(box.run("sleep 0.2; echo x >> log.txt", step="s1").exit_code)
        except StillPending as problem:
            outcomes.append(problem.code)

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (place / "log.txt").read_text() == "x\n"
    assert set(outcomes) <= {0, "pending"}
    assert 0 in outcomes


def test_an_interrupted_tool_leaves_an_unknown_effect(log: Decklog, run_id: str, make_box: Callable[..., Toolbox]) -> None:
    calls: list[str] = []

    def launch_rocket(name: str) -> str:
        """Launch a rocket."""
        calls.append(name)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return f"{name} is up"

    box = make_box(tools=[Tool.of(launch_rocket, changes=True)])
    with pytest.raises(KeyboardInterrupt):
        box.launch_rocket("a", step="s1")
    assert [one.state for one in log.effects.find(run_id)] == ["unknown"]
    with pytest.raises(Conflict, match="KeyboardInterrupt"):
        box.launch_rocket("a", step="s1")
    assert box.launch_rocket("a", step="s1", check=lambda _: EffectCheck(False)) == "a is up"
    assert box.launch_rocket("a", step="s1") == "a is up"
    assert calls == ["a", "a"]


def test_an_error_that_does_not_tell_how_it_ended_leaves_an_unknown_effect(
    log: Decklog, run_id: str, make_box: Callable[..., Toolbox]
) -> None:
    def call_home() -> None:
        """Call home."""
        raise Unavailable("the line went dead")

    box = make_box(tools=[Tool.of(call_home, changes=True)])
    with pytest.raises(Unavailable):
        box.call_home(step="s1")
    effect = log.effects.find(run_id)[0]
    assert (effect.state, effect.note) == ("unknown", "the line went dead")


def test_a_process_that_was_started_by_one_who_died_is_adopted(log: Decklog, run_id: str, box: Toolbox) -> None:
    arguments = {"command": "echo up; sleep 600"}
    call = box._new_call("s1")
    facts = box.tools["start_process"].expect(call, arguments)  # type: ignore[misc]
    effect = log.effects.intend(
        run_id, "s1", "start_process", key=effect_key("s1", "start_process", arguments), actor=GONE, facts=facts
    )
    from decklog.guard.shell import launch
    from decklog.guard.shell.shell import build_order

    order = build_order(call, arguments["command"], ".", None, bound=False, detached=True, durable=True)
    supervised = launch.launch(order)
    os.close(order.cwd_fd)
    supervised.close()
    started = box.call("start_process", arguments, step="s1")
    assert (started.process_id, started.pid) == (call.mark, supervised.pid)
    assert log.effects.get(effect.id).reconciled_by == "start_process"
    assert box.stop_process(started.process_id, force=True).was_running


@pytest.mark.slow
def test_an_effect_whose_result_is_too_large_to_keep_is_still_known(
    log: Decklog, run_id: str, make_box: Callable[..., Toolbox]
) -> None:
    calls: list[int] = []

    def print_everything(size: int) -> str:
        """Print everything."""
        calls.append(size)
        return "x" * size

    box = make_box(tools=[Tool.of(print_everything, changes=True)])
    assert len(box.print_everything(20_000_000, step="s1")) == 20_000_000
    with pytest.raises(TooLarge):
        box.print_everything(20_000_000, step="s1")
    assert calls == [20_000_000]
    assert log.effects.find(run_id)[0].state == "failed"


def test_two_tasks_with_the_same_step_each_make_it(
    log: Decklog, run_id: str, make_box: Callable[..., Toolbox], place: Path
) -> None:
    box = make_box()
    log.tasks.add_many(run_id, [{"title": "one"}, {"title": "two"}])
    for _ in range(2):
        claim = log.tasks.claim(run_id, worker="w")
        assert claim is not None
        with claim:
            box.run("echo x >> log.txt", step="s1")
            box.run("echo x >> log.txt", step="s1")
    assert (place / "log.txt").read_text() == "x\nx\n"
    assert len({one.task_id for one in log.effects.find(run_id)}) == 2


def test_toolboxes_of_two_tasks_each_make_a_step(
    log: Decklog, run_id: str, make_box: Callable[..., Toolbox], place: Path
) -> None:
    for task in ("one", "two"):
        log.tasks.add(run_id, task, task_id=task)
    for task in ("one", "two", "one"):
        make_box(task=task).run("echo x >> log.txt", step="s1")
    assert (place / "log.txt").read_text() == "x\nx\n"
