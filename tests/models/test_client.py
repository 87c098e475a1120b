"""One call to a model, from the money held before it to what is on record after it."""

from datetime import UTC, datetime

import pytest

from decklog import Decklog
from decklog.models.client import ModelClient
from decklog.models.composer import Prompt
from decklog.models.provider import ModelReply
from decklog.models.providers.making import Scripted
from decklog.models.settings import ModelSettings
from tests.conftest import on_both
from tests.models.scripted import CALL, GOOD, PROMPT, models

pytestmark = pytest.mark.usefixtures("run_id")
FIGURES = {"input_tokens": 100, "cache_read_tokens": 900, "cache_create_tokens": 50, "output_tokens": 20}


@on_both
def test_call_is_charged_by_the_usage_of_the_provider(log: Decklog) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    log.prices.set("scripted", 1_000_000, 5_000_000, cache_read_price=100_000, cache_create_price=2_000_000, valid_from=long_ago)
    answer = models(log, lambda _: ModelReply(text=GOOD, model="scripted", usage=FIGURES, answer_id="msg_1")).ask(CALL)
    assert (answer.data, answer.why) == ({"verdict": "pass", "score": 90}, "")
    (charge,) = log.ledger.find("run_1")
    assert {name: getattr(charge, name) for name in FIGURES} == FIGURES
    assert (charge.call_site, charge.answer_id, charge.cost_microdollars) == ("review.6", "msg_1", 390)
    assert answer.microdollars == 390
    (held,) = log.reservations.find("run_1")
    assert (held.state, held.microdollars > 0, held.holder) == ("settled", True, "review.6")
    (entry,) = log.journal.find("run_1", subtype="model.call")
    assert (entry.body, entry.payload["prompt"], entry.id) == (GOOD, PROMPT.digest, answer.entries[0])


def test_missing_model_is_reported_and_costs_nothing(log: Decklog) -> None:
    answer = ModelClient(log, ModelSettings(), lambda _: Scripted(lambda _: GOOD), run_id="run_1").ask(CALL)
    assert (answer.is_given, answer.why) == (False, "no model is configured for review.6")
    assert (list(log.reservations.find("run_1")), list(log.ledger.find("run_1"))) == ([], [])


def test_unreadable_answer_is_asked_for_twice(log: Decklog) -> None:
    prompts: list[str] = []

    def garbled(prompt: Prompt) -> str:
        prompts.append(prompt.digest)
        return "The change is fine, I say pass."

    answer = models(log, garbled).ask(CALL)
    assert not answer.is_given
    assert "can't be parsed: it is not JSON alone" in answer.why
    assert (len(prompts), len(set(prompts)), len(list(log.ledger.find("run_1")))) == (2, 2, 2)
    mended = models(log, lambda prompt: GOOD if prompt.parts[-1].name == "repair" else "{").ask(CALL)
    assert mended.data == {"verdict": "pass", "score": 90}


def test_short_outages_are_waited_for(log: Decklog) -> None:
    waits: list[float] = []
    replies = iter(
        [ModelReply(error_class="quota", retry_seconds=7.0), ModelReply(error_class="overload"), ModelReply(text=GOOD)]
    )
    assert models(log, lambda _: next(replies), waits=waits).ask(CALL).is_given
    assert waits == [7.0, 4.0]
    for error_class, stated in (("quota", 3600.0), ("login", None), ("refused", None), ("timeout", None)):
        waits.clear()
        reply = ModelReply(error_class=error_class, error="words of the provider", retry_seconds=stated)
        answer = models(log, lambda _, reply=reply: reply, waits=waits).ask(CALL)
        assert (answer.is_given, waits) == (False, []), error_class
        assert f"failed with {error_class}: words of the provider" in answer.why


def test_long_outage_is_given_up_after_three_tries(log: Decklog) -> None:
    waits: list[float] = []
    answer = models(log, lambda _: ModelReply(error_class="overload", usage={"input_tokens": 5}), waits=waits).ask(CALL)
    assert (answer.is_given, waits) == (False, [2.0, 4.0])
    assert [charge.input_tokens for charge in log.ledger.find("run_1")] == [5, 5, 5]


@on_both
def test_call_without_budget_is_not_sent(log: Decklog) -> None:
    log.budgets.set("run", scope_id="run_1", limit_microdollars=100)

    def never(_: Prompt) -> str:
        raise AssertionError("asked")

    answer = models(log, never, reserve_usd=0.5).ask(CALL)
    assert not answer.is_given
    assert "no budget for review.6" in answer.why


def test_answer_of_a_model_is_redacted(log: Decklog) -> None:
    secret = "ghp_" + "a1B2" * 9
    models(log, lambda _: f'{{"verdict": "pass", "score": 1, "findings": [{{"text": "{secret}"}}]}}').ask(CALL)
    (entry,) = log.journal.find("run_1", subtype="model.call")
    assert secret not in str(entry.body)
    assert entry.redacted


def test_call_without_a_provider_is_unanswered(log: Decklog) -> None:
    from decklog.core.errors import Unavailable

    class Missing:
        def reply(self, *_: object) -> ModelReply:
            raise Unavailable("the package is not installed")

    answer = models(log, lambda _: GOOD, provider=Missing()).ask(CALL)
    assert answer.why == "mine can't be asked: the package is not installed"
    assert [held.state.value for held in log.reservations.find("run_1")] == ["settled"]
