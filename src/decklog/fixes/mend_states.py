"""The states of a mend as data: what is proven in each, what comes next, what a kill leaves, and the way out of every wait."""

from collections.abc import Mapping
from dataclasses import dataclass

from decklog.stores.workflow.mends import Mend, MendState, MendWait


@dataclass(frozen=True)
class Stage:
    """One state: what is known in it, the step that leads on, what a kill in that step leaves, and what it may wait for."""

    proven: str
    step: str
    left_by_a_kill: str
    waits: tuple[MendWait, ...] = ()


STAGES: Mapping[MendState, Stage] = {
    MendState.FILED: Stage(
        "somebody said it, in these words",
        "triage",
        "an answer of the model on record, or none: the call is repeated",
        (MendWait.MODEL, MendWait.WEATHER),
    ),
    MendState.TRIAGED: Stage("which of the eight classes it is", "locate", "nothing"),
    MendState.LOCATED: Stage("where in the base its words are found", "plan", "nothing"),
    MendState.PLANNED: Stage(
        "what is to be changed, how much, and how that will be shown",
        "approve",
        "nothing; there is one question at most",
        (MendWait.APPROVAL,),
    ),
    MendState.FIXING: Stage(
        "a person's yes, where the plan is large",
        "fix",
        "a run of the conductor, which goes on: its agent is adopted, its work is kept",
        (MendWait.FIX, MendWait.APPROVAL, MendWait.WEATHER),
    ),
    MendState.FIXED: Stage("one commit beyond the base", "prove", "trials that are run again", (MendWait.FIX,)),
    MendState.PROVEN: Stage(
        "a test that fails without it by what it claims, passes with it, runs it, three times each",
        "review",
        "passes that are on record, and are not paid for again",
        (MendWait.GATE, MendWait.WEATHER),
    ),
    MendState.CLEARED: Stage(
        "the gate, or a person, let exactly this commit pass", "publish", "an effect that is looked for before it is repeated"
    ),
    MendState.PUBLISHED: Stage("others can have it", "verify", "nothing; merges are looked for", (MendWait.MERGE,)),
    MendState.VERIFIED: Stage("its test passes on the merged commit", "learn", "lessons that have keys, and are kept once"),
    MendState.CLOSED: Stage("what it taught is on record", "", "nothing"),
    MendState.DROPPED: Stage("nothing will come of it, and why", "", "nothing"),
}
# Every state may come to need a person: for trouble that no other word tells.
WAYS_OUT: Mapping[MendWait, tuple[str, ...]] = {
    MendWait.MODEL: ("decklog mend {id} --class tool", "decklog mend {id} --branch NAME", "decklog mend {id}"),
    MendWait.APPROVAL: ("decklog approvals decide {approval} granted --by NAME", "decklog mend {id} --branch NAME"),
    MendWait.FIX: ("decklog mend {id}", "decklog mend {id} --branch NAME"),
    MendWait.GATE: ("decklog review ask {id}", "decklog mend {id} --branch NAME", "decklog mend {id}"),
    MendWait.MERGE: ("{merge}decklog mend {id}", "decklog mend {id} --merged COMMIT"),
    MendWait.WEATHER: ("decklog mend {id}",),
    MendWait.PERSON: ("decklog mend {id}", "decklog mend {id} --branch NAME"),
}
# Where a person is asked about what the gate holds, the answer is what leads on.
_ASKED = ("decklog approvals decide {approval} granted --by NAME --rationale WHY", "decklog mend {id} --branch NAME")
# What may be over without anybody's word to the loop: `--all` and `--watch` look at these again by themselves.
LOOKED_AT_AGAIN = (None, MendWait.APPROVAL, MendWait.GATE, MendWait.MERGE, MendWait.WEATHER)


def ways_out(mend: Mend, asked: str | None = None) -> list[str]:
    """List the commands that lead on from where a mend is; giving it up is always one.

    `asked` is the open question to a person about what the gate holds.
    """
    if mend.state.is_end:
        return []
    known = mend.plan.get("approval") if mend.state is MendState.PLANNED else mend.triage.get("approval")
    # By what was said, which is what people have typed: a mend is found by it in its repository.
    merge = f"git merge {mend.published['branch']} && " if mend.published.get("way") == "branch" else ""
    named = {"id": mend.feedback_id, "approval": asked or known or "ID", "merge": merge}
    ways = WAYS_OUT[mend.waits_for] if mend.waits_for is not None else ("decklog mend {id}",)
    ways = _ASKED if asked is not None else ways
    return [*(way.format(**named) for way in ways), f"decklog mend drop {mend.feedback_id} --reason WHY"]
