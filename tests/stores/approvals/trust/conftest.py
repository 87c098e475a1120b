import pytest

from decklog import Decklog, ManualClock
from tests.stores.approvals.trust.trust_desk import Desk, Key, make_keys


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Key]:
    return make_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def desk(log: Decklog, clock: ManualClock, keys: dict[str, Key]) -> Desk:
    log.runs.start("Make the parser faster", run_id="run_1")
    return Desk(log, clock, keys)
