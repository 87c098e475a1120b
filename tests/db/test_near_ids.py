"""A mistyped or abbreviated id gets a suggestion."""

import pytest

from decklog import Decklog, NotFound


def hint_of(error: pytest.ExceptionInfo[NotFound]) -> str | None:
    return error.value.hint


@pytest.fixture
def many(log: Decklog) -> Decklog:
    log.runs.start("Trailing commas", run_id="commas")
    for number in range(60):
        log.runs.start("one of many", run_id=f"nightly-{number:02}")
    log.tasks.add("commas", "Change the lexer", task_id="lexer")
    log.templates.save("release", [{"title": "Tag it"}])
    return log


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["comas", "commsa", "Commas", "comma"])
def test_mistyped_run_id_is_suggested(many: Decklog, typed: str) -> None:
    for act in (
        lambda: many.runs.get(typed),
        lambda: many.tasks.add(typed, "x"),
        lambda: many.journal.append(typed, "x"),
        lambda: many.runs.snapshot(typed),
        lambda: many.overview.run(typed),
        lambda: many.ledger.charge("m", run_id=typed, cost_microdollars=1),
        lambda: many.budgets.set("run", scope_id=typed, limit_tokens=1),
        lambda: list(many.journal.tail(typed, follow=False)),
        lambda: many.journal.verify(typed),
    ):
        with pytest.raises(NotFound) as error:
            act()
        assert str(hint_of(error)).startswith("Did you mean commas?"), act


def test_other_mistyped_ids_are_suggested(many: Decklog) -> None:
    for act, meant in (
        (lambda: many.tasks.get("lexr"), "lexer"),
        (lambda: many.tasks.pause("lexxer", reason="x"), "lexer"),
        (lambda: many.tasks.add("commas", "x", depends_on=["lexr"]), "lexer"),
        (lambda: many.templates.get("realease"), "release"),
    ):
        with pytest.raises(NotFound) as error:
            act()
        assert str(hint_of(error)).startswith(f"Did you mean {meant}?")


@pytest.mark.slow
def test_the_beginning_of_an_id_names_it_when_only_one_begins_so(many: Decklog) -> None:
    task = many.tasks.add("commas", "Change the parser")
    with pytest.raises(NotFound) as error:
        many.tasks.get(task.id[:-4])
    assert hint_of(error) == f"Did you mean {task.id}?"
    with pytest.raises(NotFound) as error:
        many.runs.get("nightly")
    assert hint_of(error) is None


@pytest.mark.slow
def test_id_with_another_number_is_not_suggested(many: Decklog) -> None:
    with pytest.raises(NotFound) as error:
        many.runs.get("nightly-60")
    assert hint_of(error) is None
    with pytest.raises(NotFound) as error:
        many.tasks.add("nobody", "x")
    assert hint_of(error) == "Start it first: decklog runs start GOAL --run ID"


def test_what_has_several_parts_is_named_by_all_of_them(many: Decklog) -> None:
    with pytest.raises(NotFound, match=r"there is no agent commas, dev-1$"):
        many.runs.count_turn("commas", "dev-1")
