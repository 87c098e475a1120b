"""Spending added up by session."""

from decklog import Decklog


def test_spending_by_session_adds_sub_agents_and_leaves_forks_apart(log: Decklog) -> None:
    log.runs.start("top", run_id="top")
    log.runs.start("below", run_id="below", parent_run_id="top")
    fork = log.runs.fork("top", at=1)
    for run_id in ("top", "below", fork.id):
        log.ledger.charge("m", cost_microdollars=1_000_000, run_id=run_id)
    log.ledger.charge("m", cost_microdollars=7)
    rows = {row["key"]: row["cost_microdollars"] for row in log.ledger.summary(by="session")["rows"]}
    assert rows == {"top": 2_000_000, fork.id: 1_000_000, None: 7}
