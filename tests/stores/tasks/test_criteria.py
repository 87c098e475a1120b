from datetime import UTC, datetime
from hashlib import sha256

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound
from decklog.stores.tasks.criteria import Criterion, CriterionStatus
from tests.every import every

COVERAGE, SPEED = "Coverage above 80 %", "Parses 1 MB in 10 ms"
FIRST, SECOND = "a1b2c3d4" * 5, "e5f60718" * 5


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@pytest.fixture
def both(log: Decklog, run_id: str) -> list[Criterion]:
    return log.criteria.record(run_id, [COVERAGE, SPEED])


def test_criteria_come_back_in_their_order(log: Decklog, run_id: str, clock: ManualClock) -> None:
    then = datetime(2025, 3, 1, tzinfo=UTC)
    given = [
        "zeta",
        {"criterion": "alpha", "status": "met", "actual": "81 %", "evidence": "report", "required": False},
        {"text": "9", "required_for_completion": True, "status": None, "created_at": "2025-03-01T00:00:00Z"},
    ]
    recorded = log.criteria.record(run_id, given)
    assert [(c.number, c.criterion, c.status, c.required) for c in recorded] == [
        (1, "zeta", "pending", True),
        (2, "alpha", "met", False),
        (3, "9", "pending", True),
    ]
    assert (recorded[1].actual, recorded[1].evidence) == ("81 %", "report")
    assert recorded[0].created_at == clock.now()
    assert recorded[2].created_at == then
    log.criteria.update(run_id, "zeta", actual="later")
    assert [c.criterion for c in log.criteria.find(run_id)] == ["zeta", "alpha", "9"]
    page = log.criteria.find(run_id, limit=2)
    assert [c.number for c in log.criteria.find(run_id, limit=2, after=page.next)] == [3]


def test_the_same_list_again_undoes_no_progress(log: Decklog, run_id: str, clock: ManualClock) -> None:
    given = [{"criterion": COVERAGE, "status": "pending"}, SPEED]
    log.criteria.record(run_id, given)
    met = log.criteria.meet(run_id, COVERAGE, evidence="report")
    clock.advance(minutes=1)
    entries = len(log.journal.find(run_id))
    again = log.criteria.record(run_id, given)
    assert again[0] == met
    assert [c.already for c in again] == [True, True]
    assert len(log.journal.find(run_id)) == entries
    longer = log.criteria.record(run_id, [*given, "a third"])
    assert [(c.number, c.already) for c in longer] == [(1, True), (2, True), (3, False)]


def test_a_list_that_contradicts_what_is_required_is_refused_whole(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    with pytest.raises(Conflict, match="already recorded"):
        log.criteria.record(run_id, ["new", {"criterion": SPEED, "required": False}])
    assert log.criteria.find(run_id) == both


@every(
    "bad",
    [
        [],
        None,
        "one",
        {"criterion": "one"},
        ["one", ""],
        ["one", "  "],
        ["one", 7],
        ["one", {}],
        ["one", {"status": "met"}],
        ["one", "one"],
        ["one", {"criterion": "one"}],
        ["one", {"criterion": "two", "status": "done"}],
        ["one", {"criterion": "two", "required": 1}],
        ["one", {"criterion": "two", "actual": 81}],
        ["one", {"criterion": "two", "colour": "red"}],
        ["one", {"criterion": "two", "is_stale": True}],
        ["one", {"criterion": "two", "created_at": "soon"}],
        ["one", "two\x00"],
    ],
)
def test_a_bad_list_is_refused_whole(log: Decklog, run_id: str, bad: object) -> None:
    with pytest.raises(Invalid):
        log.criteria.record(run_id, bad)
    assert log.criteria.find(run_id) == []


CHANGES: dict[str, object] = {"status": "failed", "actual": "", "evidence": "new report", "required": False}


@pytest.mark.parametrize("field", CHANGES)
def test_an_update_changes_only_what_is_given(log: Decklog, run_id: str, field: str, clock: ManualClock) -> None:
    given = {"criterion": COVERAGE, "status": "met", "actual": "81 %", "evidence": "report"}
    before = log.criteria.record(run_id, [given])[0]
    clock.advance(minutes=1)
    after = log.criteria.update(run_id, COVERAGE, **{field: CHANGES[field]})  # type: ignore[arg-type]
    changed = {name for name, value in after.as_dict().items() if value != before.as_dict()[name]}
    assert changed == {field, "updated_at"}
    assert getattr(after, field) == CHANGES[field]
    assert log.criteria.update(run_id, COVERAGE, **{field: CHANGES[field]}).already  # type: ignore[arg-type]


def test_a_criterion_is_named_by_text_or_number(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    assert log.criteria.get(run_id, SPEED) == log.criteria.get(run_id, "2") == both[1]
    log.criteria.record(run_id, ["1"])
    assert log.criteria.get(run_id, "1").number == 3


@every(
    "bad",
    [
        {"status": "done"},
        {"status": ""},
        {"actual": 7},
        {"required": "yes"},
        {"clear": ["status"]},
        {"actual": "x", "clear": ["actual"]},
        {"colour": "red"},
        {"evidence_commit": FIRST},
        {},
    ],
)
def test_a_bad_update_is_refused(log: Decklog, run_id: str, both: list[Criterion], bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.criteria.update(run_id, COVERAGE, **bad)  # type: ignore[arg-type]
    assert log.criteria.find(run_id) == both


def test_texts_of_a_criterion_can_be_cleared(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    log.criteria.update(run_id, SPEED, actual="11 ms", evidence="bench")
    cleared = log.criteria.update(run_id, SPEED, clear=["actual", "evidence"])
    assert (cleared.actual, cleared.evidence) == (None, None)


def test_what_does_not_exist_is_not_found(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    for run, name in [(run_id, "coverage above 80 %"), (run_id, "3"), (run_id, ""), ("nobody", SPEED), ("@desk", SPEED)]:
        for act in (log.criteria.get, log.criteria.meet):
            with pytest.raises(NotFound):
                act(run, name)
        with pytest.raises(NotFound):
            log.criteria.update(run, name, status=CriterionStatus.FAILED)
    for run in ("nobody", "@desk"):
        for on_run in (
            lambda run: log.criteria.record(run, ["x"]),
            lambda run: log.criteria.open_required(run),
            lambda run: log.criteria.observe(run, commit=FIRST),
            lambda run: log.criteria.check(run, commit=FIRST),
        ):
            with pytest.raises(NotFound, match="no run"):
                on_run(run)
    assert log.criteria.find("nobody") == []


# Evidence that goes stale


def test_evidence_of_a_commit_goes_stale_with_the_next_one(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    met = log.criteria.meet(run_id, COVERAGE, evidence="report", actual="83 %", evidence_commit=FIRST)
    assert (met.status, met.evidence, met.actual, met.evidence_commit) == ("met", "report", "83 %", FIRST)
    assert log.criteria.observe(run_id, commit=FIRST) == []
    (stale,) = log.criteria.observe(run_id, commit=SECOND)
    assert (stale.criterion, stale.status, stale.is_stale) == (COVERAGE, "met", True)
    assert FIRST in (stale.stale_reason or "")
    assert SECOND in (stale.stale_reason or "")
    fresh = log.criteria.meet(run_id, COVERAGE, evidence="new report", evidence_commit=SECOND)
    assert (fresh.is_stale, fresh.stale_reason, fresh.actual) == (False, None, "83 %")
    assert log.criteria.observe(run_id, commit=SECOND) == []


def test_a_shortened_commit_is_the_same_commit(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    log.criteria.meet(run_id, COVERAGE, evidence_commit=FIRST[:9].upper())
    assert log.criteria.observe(run_id, commit=FIRST) == []
    assert len(log.criteria.observe(run_id, commit=FIRST[:6])) == 1  # too short to name one commit


def test_evidence_of_files_goes_stale_when_one_changes_or_goes(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    log.criteria.meet(run_id, COVERAGE, evidence_files={"a.py": digest("a"), "b.py": digest("b").upper()})
    log.criteria.meet(run_id, SPEED, evidence_files={"c.py": digest("c")})
    assert log.criteria.observe(run_id, files={"a.py": digest("a"), "b.py": digest("b"), "z.py": digest("z")}) == []
    assert log.criteria.observe(run_id, commit=SECOND) == []  # a commit says nothing of files
    (stale,) = log.criteria.observe(run_id, files={"b.py": digest("other")})
    assert (stale.criterion, stale.stale_reason) == (COVERAGE, "b.py has changed since the evidence was taken")
    both_stale = log.criteria.observe(run_id, files={"c.py": None})
    assert [c.stale_reason for c in both_stale][1] == "c.py is gone since the evidence was taken"
    assert [c.criterion for c in log.criteria.find(run_id, is_stale=True)] == [COVERAGE, SPEED]


def test_evidence_is_fresh_again_only_when_all_of_it_is_seen_unchanged(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    files: dict[str, object] = {"a.py": digest("a"), "b.py": digest("b")}
    log.criteria.meet(run_id, COVERAGE, evidence_commit=FIRST, evidence_files=files)
    assert len(log.criteria.observe(run_id, files={"a.py": digest("other")})) == 1
    assert len(log.criteria.observe(run_id, commit=FIRST)) == 1
    assert len(log.criteria.observe(run_id, commit=FIRST, files={"a.py": digest("a")})) == 1
    assert len(log.criteria.observe(run_id, files=files)) == 1
    assert log.criteria.observe(run_id, commit=FIRST, files=files) == []
    assert log.criteria.get(run_id, COVERAGE).stale_reason is None


def test_seeing_the_same_again_writes_nothing(log: Decklog, run_id: str, both: list[Criterion], clock: ManualClock) -> None:
    log.criteria.meet(run_id, COVERAGE, evidence_commit=FIRST)
    stale = log.criteria.observe(run_id, commit=SECOND)
    entries = len(log.journal.find(run_id))
    clock.advance(minutes=1)
    assert log.criteria.observe(run_id, commit="f" * 40) == stale
    assert len(log.journal.find(run_id)) == entries


def test_unbound_evidence_never_goes_stale(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    log.criteria.meet(run_id, COVERAGE, evidence="I saw it")
    assert log.criteria.observe(run_id, commit=SECOND, files={"a.py": None}) == []


def test_a_stale_criterion_needs_evidence_that_is_bound_again(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    log.criteria.meet(run_id, COVERAGE, evidence_commit=FIRST)
    stale = log.criteria.observe(run_id, commit=SECOND)[0]
    for act in (
        lambda: log.criteria.meet(run_id, COVERAGE),
        lambda: log.criteria.meet(run_id, COVERAGE, evidence="trust me"),
        lambda: log.criteria.update(run_id, COVERAGE, status=CriterionStatus.MET),
    ):
        with pytest.raises(Conflict, match="gone stale"):
            act()
    assert log.criteria.get(run_id, COVERAGE) == stale
    assert log.criteria.update(run_id, COVERAGE, actual="?").is_stale
    files: dict[str, object] = {"a.py": digest("a")}
    fresh = log.criteria.meet(run_id, COVERAGE, evidence_files=files)
    assert (fresh.is_stale, fresh.evidence_commit, fresh.evidence_files) == (False, None, files)


def test_a_criterion_that_is_not_met_any_more_lets_go_of_its_proof(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    log.criteria.meet(run_id, COVERAGE, evidence="report", evidence_commit=FIRST)
    log.criteria.observe(run_id, commit=SECOND)
    failed = log.criteria.update(run_id, COVERAGE, status=CriterionStatus.FAILED)
    assert (failed.evidence_commit, failed.is_stale, failed.stale_reason, failed.evidence) == (None, False, None, "report")


def test_meeting_it_again_without_a_word_keeps_the_proof(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    met = log.criteria.meet(run_id, COVERAGE, evidence_commit=FIRST)
    assert log.criteria.meet(run_id, COVERAGE) == met
    assert log.criteria.meet(run_id, COVERAGE, evidence_commit=FIRST).already
    assert log.criteria.meet(run_id, COVERAGE, evidence="more").evidence_commit == FIRST


def test_a_check_shows_what_an_observation_would_and_writes_nothing(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    met = log.criteria.meet(run_id, COVERAGE, evidence_files={"a.py": digest("a")})
    seen = log.criteria.check(run_id, files={"a.py": digest("b")})
    assert [(c.criterion, c.is_stale) for c in seen] == [(COVERAGE, True), (SPEED, False)]
    assert log.criteria.get(run_id, COVERAGE) == met
    log.criteria.observe(run_id, files={"a.py": digest("b")})
    assert not any(c.is_stale for c in log.criteria.check(run_id, files={"a.py": digest("a")}))
    assert log.criteria.get(run_id, COVERAGE).is_stale


def test_a_file_named_like_a_secret_keeps_its_digest(log: Decklog, run_id: str, both: list[Criterion]) -> None:
    files: dict[str, object] = {name: digest(name) for name in ("src/auth/token", "api_key", "password", "a b.py", "ü.py")}
    log.criteria.meet(run_id, COVERAGE, evidence_files=files)
    assert log.criteria.get(run_id, COVERAGE).evidence_files == files
    assert log.criteria.observe(run_id, files=files) == []
    assert not log.criteria.meet(run_id, COVERAGE, evidence_files={"api_key": digest("x")}).already
    assert not log.criteria.meet(run_id, COVERAGE, evidence_files={"api_key": digest("y")}).already
    assert len(log.criteria.observe(run_id, files={"api_key": digest("x")})) == 1


@every(
    "bad",
    [
        {"evidence_commit": ""},
        {"evidence_commit": "two words"},
        {"evidence_commit": "x" * 201},
        {"evidence_files": {}},
        {"evidence_files": ["a.py"]},
        {"evidence_files": {"": digest("a")}},
        {"evidence_files": {"a.py": "abc"}},
        {"evidence_files": {"a.py": None}},
        {"evidence_files": {"a.py": digest("a") + "\n"}},
        {"evidence": 7},
    ],
)
def test_bad_evidence_is_refused(log: Decklog, run_id: str, both: list[Criterion], bad: dict[str, object]) -> None:
    with pytest.raises(Invalid):
        log.criteria.meet(run_id, COVERAGE, **bad)  # type: ignore[arg-type]
    assert log.criteria.find(run_id) == both


@pytest.mark.parametrize("bad", [{}, {"files": {}}, {"commit": " "}, {"files": {"a.py": "abc"}}, {"files": ["a.py"]}])
def test_a_bad_observation_is_refused(log: Decklog, run_id: str, both: list[Criterion], bad: dict[str, object]) -> None:
    for act in (log.criteria.observe, log.criteria.check):
        with pytest.raises(Invalid):
            act(run_id, **bad)  # type: ignore[arg-type]


def test_open_are_the_required_ones_that_are_not_met_or_stale(log: Decklog, run_id: str) -> None:
    assert log.criteria.open_required(run_id) == []
    names = ["met", "stale", "pending", "failed", "blocked"]
    log.criteria.record(run_id, [*names, {"criterion": "optional", "required": False}])
    log.criteria.meet(run_id, "met", evidence_commit=SECOND)
    log.criteria.meet(run_id, "stale", evidence_commit=FIRST)
    log.criteria.observe(run_id, commit=SECOND)
    log.criteria.update(run_id, "failed", status=CriterionStatus.FAILED)
    log.criteria.update(run_id, "blocked", status=CriterionStatus.BLOCKED)
    assert [c.criterion for c in log.criteria.open_required(run_id)] == ["stale", "pending", "failed", "blocked"]
    assert [c.criterion for c in log.criteria.find(run_id, required=False)] == ["optional"]
    assert [c.criterion for c in log.criteria.find(status="met")] == ["met", "stale"]  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        log.criteria.find(run_id, status="")  # type: ignore[arg-type]


def test_a_secret_in_a_criterion_is_not_kept(log: Decklog, run_id: str) -> None:
    secret = "gh" + "p_" + "Zk3x" * 9
    text = f"the key {secret} is gone"
    log.criteria.record(run_id, [text])
    met = log.criteria.meet(run_id, text, evidence=secret, actual=secret)
    assert secret not in str(met.as_dict())
    assert log.criteria.record(run_id, [text])[0] == met
    with pytest.raises(Invalid, match="twice"):
        log.criteria.record(run_id, [text, text.replace("Zk3x", "Yk4w")])
