import pytest

from decklog import Conflict, Decklog, Invalid, NotFound, Unproven
from decklog.stores.effects.effects import Effect


def intended(log: Decklog, run_id: str, key: str = "k1", actor: str = "one") -> Effect:
    return log.effects.intend(run_id, "step 1", "run", key=key, actor=actor, arguments={"command": "x"}, facts={"a": 1})


def test_an_intent_is_written_once_for_a_key(log: Decklog, run_id: str) -> None:
    first = intended(log, run_id)
    again = intended(log, run_id, actor="two")
    assert (again.id, again.already, again.actor) == (first.id, True, "one")
    other_run = log.runs.start("other").id
    assert intended(log, other_run).id != first.id
    assert log.effects.known(run_id, "k1").id == first.id
    assert log.effects.known(run_id, "k2") is None


def test_only_the_actor_settles_and_only_once(log: Decklog, run_id: str) -> None:
    effect = intended(log, run_id)
    with pytest.raises(Conflict):
        log.effects.settle(effect.id, actor="two", result={"code": 0})
    done = log.effects.settle(effect.id, actor="one", result={"code": 0})
    assert (done.state, done.result, done.actor) == ("done", {"code": 0}, None)
    with pytest.raises(Conflict):
        log.effects.settle(effect.id, actor="one", result={"code": 1})
    assert log.effects.get(effect.id).result == {"code": 0}


def test_an_effect_may_end_in_an_error(log: Decklog, run_id: str) -> None:
    effect = intended(log, run_id)
    failed = log.effects.settle(effect.id, actor="one", error={"code": "timed_out"})
    assert (failed.state, failed.error, failed.is_settled) == ("failed", {"code": "timed_out"}, True)


def test_a_long_result_is_kept_by_its_digest(log: Decklog, run_id: str) -> None:
    effect = log.effects.settle(intended(log, run_id).id, actor="one", result="x" * 200_000)
    assert effect.result == log.effects.get(effect.id).result == "x" * 200_000
    assert effect.result_digest is not None
    assert log.journal.verify().ok


def test_what_was_never_settled_is_unknown_once_its_actor_is_gone(log: Decklog, run_id: str) -> None:
    effect = intended(log, run_id)
    with pytest.raises(Conflict):
        log.effects.doubt(effect.id, actor="another")
    assert log.effects.doubt(effect.id, actor="one", note="killed").state == "unknown"
    assert [one.id for one in log.effects.open(run_id)] == [effect.id]


def test_taking_up_is_for_one_and_not_after_a_stale_look(log: Decklog, run_id: str) -> None:
    effect = log.effects.doubt(intended(log, run_id).id, actor="one")
    taken = log.effects.take_up(effect.id, actor="two", attempts=effect.attempts)
    assert (taken.state, taken.actor, taken.attempts) == ("intended", "two", 2)
    with pytest.raises(Conflict):
        log.effects.take_up(effect.id, actor="three", attempts=effect.attempts)
    log.effects.doubt(effect.id, actor="two")
    # Someone who looked before the second attempt knows nothing about it.
    with pytest.raises(Conflict):
        log.effects.take_up(effect.id, actor="three", attempts=effect.attempts)
    with pytest.raises(Conflict):
        log.effects.confirm(effect.id, attempts=effect.attempts)


def test_a_check_confirms_what_happened(log: Decklog, run_id: str) -> None:
    effect = log.effects.doubt(intended(log, run_id).id, actor="one")
    done = log.effects.confirm(effect.id, attempts=1, result={"code": 0}, by="check")
    assert (done.state, done.result, done.reconciled_by) == ("done", {"code": 0}, "check")


def test_a_person_reconciles_in_either_way(log: Decklog, run_id: str) -> None:
    happened = log.effects.doubt(intended(log, run_id, "k1").id, actor="one")
    did_not = log.effects.doubt(intended(log, run_id, "k2").id, actor="one")
    yes = log.effects.reconcile(happened.id, "yes", by="ana", reason="saw it")  # type: ignore[arg-type]
    no = log.effects.reconcile(did_not.id, "no", by="ana")  # type: ignore[arg-type]
    assert (yes.state, yes.reconciled_by, yes.note) == ("done", "ana", "saw it")
    assert (no.state, no.settled_at) == ("cleared", None)
    assert log.effects.take_up(no.id, actor="two", attempts=1).state == "intended"
    for wrong in ("maybe", ""):
        with pytest.raises(Invalid):
            log.effects.reconcile(happened.id, wrong, by="ana")  # type: ignore[arg-type]
    with pytest.raises(Invalid, match="by can't be blank"):
        log.effects.reconcile(happened.id, "yes", by=" ")  # type: ignore[arg-type]
    with pytest.raises(Conflict):
        log.effects.reconcile(happened.id, "no", by="ana")  # type: ignore[arg-type]


def test_lists_are_by_state_tool_and_step(log: Decklog, run_id: str) -> None:
    intended(log, run_id, "k1")
    settled = log.effects.settle(intended(log, run_id, "k2").id, actor="one", result=[1])
    assert [one.key for one in log.effects.find(run_id, state="done")] == ["k2"]  # type: ignore[arg-type]
    assert log.effects.find(run_id, state="done")[0].result == settled.result == [1]  # type: ignore[arg-type]
    assert len(log.effects.find(run_id, tool="run", step="step 1")) == 2
    assert log.effects.find(run_id, tool="write_file") == []
    assert [one.key for one in log.effects.open()] == ["k1"]
    with pytest.raises(NotFound):
        log.effects.get("eff_missing")
    with pytest.raises(Invalid):
        log.effects.intend(run_id, " ", "run", key="k3", actor="one")


@pytest.mark.parametrize("result", [{"code": 0}, [5], [], "text", 0, None, [[1], 2]], ids=repr)
def test_a_result_is_the_same_however_the_effect_is_read(log: Decklog, run_id: str, result: object) -> None:
    effect = log.effects.settle(intended(log, run_id).id, actor="one", result=result)
    seq = str(log.journal.find(run_id, limit=1)[0].seq)
    assert effect.result == result
    assert log.effects.get(effect.id).result == result
    assert log.effects.find(run_id)[0].result == result
    assert log.journal.at(Effect, effect.id, seq).result == result
    assert log.runs.snapshot(run_id).records["effects"][0].as_dict()["result"] == result
    assert log.runs.records_at(run_id, "effects", seq)[0].result == result


def _bound(log: Decklog, run_id: str) -> str:
    """Bind an owner, and give an effect of unknown outcome."""
    effect = log.effects.doubt(intended(log, run_id).id, actor="one")
    log.trust.bind("ana", "cli", password="correct horse " + "battery staple")
    return effect.id


def test_unknown_effect_is_not_taken_up_or_confirmed_without_the_owners_signature(log: Decklog, run_id: str) -> None:
    effect_id = _bound(log, run_id)
    with pytest.raises(Unproven, match="only the owner decides"):
        log.effects.take_up(effect_id, actor="two", attempts=1)
    with pytest.raises(Unproven, match="only the owner decides"):
        log.effects.confirm(effect_id, attempts=1, result="it was done")
    with pytest.raises(Conflict):
        log.effects.settle(effect_id, actor="one", result="it was done")
    assert log.effects.get(effect_id).state == "unknown"
    with log.proving(password="correct horse " + "battery staple"):
        log.effects.reconcile(effect_id, "no", by="ana")  # type: ignore[arg-type]
    log.effects.take_up(effect_id, actor="two", attempts=1)
    assert log.effects.settle(effect_id, actor="two", result="done now").state == "done"
    assert log.journal.verify().ok


@pytest.mark.parametrize("state", ["done", "intended", "failed", "cleared"])
def test_unknown_effect_that_is_changed_past_the_verbs_is_reported(log: Decklog, run_id: str, state: str) -> None:
    effect_id = _bound(log, run_id)
    with log.transaction():
        log.effects._change_all(
            Effect,
            "update effects set state = :state, actor = :actor, error = :error, settled_at = :at where id = :id returning *",
            id=effect_id,
            state=state,
            error={"code": "forged"} if state == "failed" else None,
            actor="two" if state == "intended" else None,
            at=log.clock.now() if state in ("done", "failed") else None,
        )
    assert any(f"effects {effect_id} was changed without" in problem.what for problem in log.journal.verify().problems)


def test_check_decides_on_an_abandoned_effect_before_it_is_unknown(log: Decklog, run_id: str) -> None:
    _bound(log, run_id)
    done, again = intended(log, run_id, "k2"), intended(log, run_id, "k3")
    with pytest.raises(Conflict):
        log.effects.confirm(done.id, attempts=1, abandoned_by="another")
    assert log.effects.confirm(done.id, attempts=1, result="found", abandoned_by="one").state == "done"
    taken = log.effects.take_up(again.id, actor="two", attempts=1, abandoned_by="one")
    assert (taken.state, taken.actor, taken.attempts) == ("intended", "two", 2)
    with pytest.raises(Conflict):
        log.effects.take_up(again.id, actor="three", attempts=1, abandoned_by="one")
    assert log.journal.verify().ok
