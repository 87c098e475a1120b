from datetime import timedelta

import pytest

from decklog import Conflict, Decklog, Invalid, ManualClock, NotFound


def test_an_output_comes_back_as_it_was_saved(log: Decklog, run_id: str, clock: ManualClock) -> None:
    saved = log.outputs.save(run_id, " lint-check ", {"issues": 3, "files": ["a.py"]}, agent="developer", group_id="A")
    assert (saved.skill, saved.agent, saved.group_id, saved.iteration) == ("lint-check", "developer", "A", 1)
    assert saved.document == {"issues": 3, "files": ["a.py"]}
    assert saved.saved_at == clock.now()
    assert log.outputs.get(saved.id) == saved
    assert log.outputs.latest(run_id, "lint-check") == saved


@pytest.mark.parametrize("document", [{"x": "long " * 5000}, ["long " * 5000], "text", 7, None, True, [], {}])
def test_a_document_of_any_kind_and_length_is_kept(log: Decklog, run_id: str, document: object) -> None:
    saved = log.outputs.save(run_id, "scan", document)
    assert saved.document == document
    assert log.outputs.get(saved.id) == saved
    assert log.outputs.find(run_id)[0].document == document


def test_a_long_document_stands_in_no_row(log: Decklog, run_id: str) -> None:
    saved = log.outputs.save(run_id, "scan", {"x": "long " * 5000})
    (entry,) = log.journal.history("outputs", saved.id)
    assert "document" not in entry.payload  # type: ignore[operator]
    assert entry.payload["digest"] == saved.digest  # type: ignore[index]


def test_iterations_count_each_skill_agent_and_group(log: Decklog, run_id: str) -> None:
    places = [("scan", None, None), ("scan", "dev", None), ("scan", None, "A"), ("scan", "dev", "A"), ("lint", None, None)]
    for expected in (1, 2, 3):
        for skill, agent, group_id in places:
            assert log.outputs.save(run_id, skill, {}, agent=agent, group_id=group_id).iteration == expected
    other = log.runs.start("another", run_id="run_2").id
    assert log.outputs.save(other, "scan", {}).iteration == 1


@pytest.mark.parametrize(("agent", "group"), [("null", "null"), ("'dev'", "null"), ("null", "'A'")])
def test_the_table_itself_refuses_a_second_output_with_the_same_iteration(
    log: Decklog, run_id: str, agent: str, group: str
) -> None:
    sql = f"""
        insert into outputs (id, run_id, number, skill, agent, group_id, iteration, digest, redacted, saved_at)
        values (:id, :run_id, :number, 'scan', {agent}, {group}, 1, 'x', 0, '2026')
    """
    with pytest.raises(Conflict), log.transaction():
        for number in (1, 2):
            log.db.count(sql, {"id": str(number), "run_id": run_id, "number": number})


def test_latest_is_by_order_not_by_time(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.outputs.save(run_id, "scan", {"n": 1}, agent="dev", saved_at=clock.now() + timedelta(days=1))
    log.outputs.save(run_id, "scan", {"n": 2}, agent="qa", group_id="A")
    log.outputs.save(run_id, "scan", {"n": 3}, agent="dev", saved_at=clock.now() - timedelta(days=1))
    assert log.outputs.latest(run_id, "scan").document == {"n": 3}  # type: ignore[union-attr]
    assert log.outputs.latest(run_id, "scan", agent="qa").document == {"n": 2}  # type: ignore[union-attr]
    assert log.outputs.latest(run_id, "scan", group_id="A").document == {"n": 2}  # type: ignore[union-attr]
    assert log.outputs.latest(run_id, "lint") is None
    assert [each.document for each in log.outputs.find(run_id, skill="scan")] == [{"n": 3}, {"n": 2}, {"n": 1}]
    page = log.outputs.find(run_id, agent="dev", limit=1)
    assert [each.document for each in page] == [{"n": 3}]
    assert [each.document for each in log.outputs.find(run_id, agent="dev", limit=1, after=page.next)] == [{"n": 1}]


def test_the_same_key_saves_once(log: Decklog, run_id: str) -> None:
    first = log.outputs.save(run_id, "scan", {"n": 1}, key="k")
    again = log.outputs.save(run_id, "scan", {"n": 2}, key="k")
    assert again == first
    assert again.already
    with pytest.raises(Conflict):
        log.outputs.save(run_id, "lint", {}, key="k")


def test_a_secret_in_an_output_is_not_kept(log: Decklog, run_id: str) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    for document in ({"token": secret}, {"token": secret, "x": "long " * 5000}, f"password={secret}"):
        saved = log.outputs.save(run_id, "scan", document)
        assert saved.redacted
        assert secret not in str(log.outputs.get(saved.id).as_dict())


# Evidence


def test_evidence_is_an_output_in_the_last_minutes(log: Decklog, run_id: str, clock: ManualClock) -> None:
    log.outputs.save(run_id, "lint", {}, agent="dev")
    clock.advance(minutes=20)
    log.outputs.save(run_id, "scan", {}, agent="qa")
    clock.advance(minutes=10)
    assert log.outputs.check_evidence(run_id, [" scan ", "coverage", "lint", ""]) == {
        "complete": False,
        "missing": ["coverage"],
        "found": ["scan", "lint"],
        "mandatory": ["scan", "coverage", "lint"],
        "recency_window_minutes": 30,
    }
    assert log.outputs.check_evidence(run_id, ["lint", "scan"])["complete"] is True
    assert log.outputs.check_evidence(run_id, ["lint", "scan"], agent="dev")["missing"] == ["scan"]
    assert log.outputs.check_evidence(run_id, ["lint", "scan"], since_minutes=29)["missing"] == ["lint"]
    clock.advance(microseconds=1)
    assert log.outputs.check_evidence(run_id, ["lint", "scan"])["missing"] == ["lint"]
    assert log.outputs.check_evidence(run_id, [])["complete"] is True


@pytest.mark.parametrize("minutes", [0, -1, True, 1.5, "30"])
def test_a_window_is_a_positive_number_of_minutes(log: Decklog, run_id: str, minutes: int) -> None:
    with pytest.raises(Invalid):
        log.outputs.check_evidence(run_id, ["lint"], since_minutes=minutes)


def test_blank_names_and_unknown_runs_are_refused(log: Decklog, run_id: str) -> None:
    with pytest.raises(Invalid):
        log.outputs.save(run_id, " ", {})
    with pytest.raises(Invalid):
        log.outputs.save(run_id, "scan", {}, agent="")
    with pytest.raises(Invalid):
        log.outputs.save(run_id, "scan", {}, group_id=" ")
    with pytest.raises(Invalid):
        log.outputs.save(run_id, "scan", {"x": float("nan")})
    with pytest.raises(NotFound):
        log.outputs.save("nobody", "scan", {})
    with pytest.raises(NotFound):
        log.outputs.check_evidence("nobody", ["scan"])
    with pytest.raises(NotFound):
        log.outputs.get("out_nothing")
    assert log.outputs.find("nobody") == []
    assert len(log.journal.find(run_id)) == 1
