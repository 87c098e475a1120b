"""What `top` shows of each thing that is opened."""

from decklog import Decklog, ManualClock
from decklog.cli.screens.top import thing_page


def test_everything_that_can_be_marked_opens_as_what_it_is(log: Decklog, clock: ManualClock, run_id: str) -> None:
    log.approvals.ask("run_1", "Push to main?", by="dev", about="git push origin main")
    log.inbox.post("dev", "Which name?", severity="question", run_id="run_1")  # type: ignore[arg-type]
    log.runs.start("another goal", run_id="run_2")
    clock.advance(hours=9)
    summary, waiting = log.overview.now(), log.overview.waiting()
    assert {item.kind.value for item in waiting} == {"approval", "question", "stalled"}
    shown = {
        getattr(thing, "kind", "run"): "\n".join(
            "".join(piece.text for piece in line) for line in thing_page(log, thing, 90).lines
        )
        for thing in (*waiting, *summary.runs)
    }
    assert "git push origin main" in shown["approval"]
    assert "Which name?" in shown["question"]
    assert "another goal" in shown["stalled"] + shown["run"]
    assert not [text for text in shown.values() if "there is no" in text]
