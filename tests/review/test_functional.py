"""Stage 2 on labelled changes: what it must stop, and what it must let go."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from decklog import Decklog
from decklog.review.result import StageResult
from tests.conductor.repositories import make_repository
from tests.review import labelled_functional as labelled
from tests.review.changes import SETTINGS, Desk
from tests.searches import FULL

# All of them take seconds: every eighth where not everything is wanted.
_EACH = 1 if FULL else 8


@pytest.fixture
def shop(sqlite_target: str, tmp_path: Path) -> Iterator[Desk]:
    with Decklog.open(sqlite_target) as log:
        yield Desk(log, make_repository(tmp_path / "repository", {**labelled.BASE, "decklog.toml": SETTINGS}))


def of_each(desk: Desk, changes: Mapping[str, labelled.Files], each: int = _EACH) -> dict[str, StageResult]:
    """Run stage 2 on some changes in one run, so the checks of the base run once."""
    run_id = desk.log.runs.start("Review").id
    found = {}
    for name in list(changes)[::each]:
        flag = str(desk.folder.parent / f"flag-{len(found)}")
        files = {path: text and text.replace("FLAG", repr(flag)) for path, text in changes[name].items()}
        change = desk.commit(files, labelled.MESSAGES.get(name, "Change the shop"))
        found[name] = desk.gate(change, run_id=run_id).run_stage(2)
    return found


def finding_kinds(result: StageResult) -> list[str]:
    return [f"{one.severity} {one.kind}" for one in result.findings]


@pytest.mark.slow
def test_stage_2_holds_every_bad_change(shop: Desk) -> None:
    found = of_each(shop, labelled.BAD)
    assert {name: finding_kinds(one) for name, one in found.items() if one.status not in ("fail", "unproven")} == {}


@pytest.mark.slow
def test_stage_2_lets_tests_go_with_the_code_that_they_tried_and_not_without_it(shop: Desk) -> None:
    honest = of_each(shop, labelled.GOOD_REMOVALS, 1)
    assert {name: finding_kinds(one) for name, one in honest.items() if one.status != "pass" or one.findings} == {}
    held = of_each(shop, labelled.BAD_REMOVALS, 1)
    assert [finding_kinds(one) for one in held.values()] == [["blocking census"], ["question old-tests"]]


@pytest.mark.slow
def test_stage_2_lets_every_honest_change_go_without_a_word(shop: Desk) -> None:
    found = of_each(shop, labelled.GOOD)
    assert {name: finding_kinds(one) for name, one in found.items() if one.status != "pass" or one.findings} == {}
