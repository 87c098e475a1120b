"""Pass 6: a model that did not write the change looks for what is wrong with it, and says how sure it is."""

from decklog.review.asking import Asked, asked
from decklog.review.change import Change
from decklog.review.result import PassResult, passed, skipped
from decklog.review.settings import Rules


def adversarial(change: Change, rules: Rules, ask: Asked, *, suspected: str = "") -> PassResult:
    """Have a model look for faults, and at those that were suspected. Its score counts as much as its findings."""
    if 6 not in rules.model_passes:
        return skipped(6, "the repository's settings do not ask for it")
    more = [("suspected while it was made", suspected)] if suspected else []
    said = ask(6, [("message", change.message), ("diff", change.diff), *more])
    if said.data is None:
        return passed(6, unproven=said.why, is_weather=said.is_weather, by=said.by)
    return passed(6, asked(said.data), score=int(said.data["score"]), by=said.by)
