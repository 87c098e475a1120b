"""What a message can mean, and the exact commands that mean it without any model."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

# Below this a model's guess counts as none.
SURE_ENOUGH = 70
HIGHEST_TIER = 5


class Intent(StrEnum):
    """What somebody wants of the agents. `free_form` is for them to read."""

    ENABLE_SELF_EDIT_SESSION = "enable_self_edit_session"
    ENABLE_SELF_EDIT_PERMANENT = "enable_self_edit_permanent"
    DISABLE_SELF_EDIT = "disable_self_edit"
    PROMOTE_TIER = "promote_tier"
    DEMOTE_TIER = "demote_tier"
    GRANT_PER_CALL_SELF_EDIT = "grant_per_call_selfedit"
    WHAT_TIER = "what_tier"
    SPEND_QUERY = "spend_query"
    PAUSE = "pause"
    RESUME = "resume"
    AUTHORISE_SENSITIVE = "authorise_sensitive"
    FEEDBACK = "feedback"
    SKILL_INVOKE = "skill_invoke"
    FREE_FORM = "free_form"

    @property
    def is_for_the_manager(self) -> bool:
        """Whether only the manager may order it, with a proof, however it is worded."""
        return self in _MANAGERS

    @property
    def only_tells(self) -> bool:
        """Whether it changes nothing, so that whoever asks may hear it."""
        return self in (Intent.WHAT_TIER, Intent.SPEND_QUERY, Intent.FREE_FORM)


_MANAGERS = (
    Intent.ENABLE_SELF_EDIT_SESSION,
    Intent.ENABLE_SELF_EDIT_PERMANENT,
    Intent.PROMOTE_TIER,
    Intent.GRANT_PER_CALL_SELF_EDIT,
    Intent.AUTHORISE_SENSITIVE,
)


@dataclass(frozen=True, kw_only=True)
class Understood:
    """What a message was taken to mean: by an exact command, by a model, or by nobody.

    Of a guess that was not sure enough, `args` has what it was.
    """

    intent: Intent
    args: Mapping[str, Any] = field(default_factory=dict)
    confidence: int = 0
    by: str = "nobody"
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "intent": self.intent.value, "args": dict(self.args)}


_REASON = r"(?:: *(?P<reason>.+))"
_TASK = r"(?: task)?(?: (?P<task>[\w.:-]+))?"
_APPROVAL = r"(?P<approval>[\w.:-]+)"
_TO_TIER = r"(?: to(?: tier)? (?P<to_tier>\d))?"
# The whole message must be the command: "pause before you touch the parser" is a wish, and for the agents to read.
COMMANDS: Mapping[Intent, tuple[str, str]] = {
    Intent.WHAT_TIER: (r"(?:what|which) tier(?: are you(?: at| on)?)?", "what tier"),
    Intent.SPEND_QUERY: (r"(?:what (?:was|did you) )?spen[dt](?: today)?", "spend"),
    Intent.PAUSE: (rf"pause{_TASK}{_REASON}?", "pause [TASK][: WHY]"),
    Intent.RESUME: (rf"resume{_TASK}", "resume [TASK]"),
    Intent.FEEDBACK: (r"feedback: *(?P<reason>.+)", "feedback: WHAT WENT WRONG"),
    Intent.SKILL_INVOKE: (r"(?:use )?skill (?P<skill>[\w.-]+)", "skill NAME"),
    Intent.DEMOTE_TIER: (rf"demote{_TO_TIER}{_REASON}?", "demote [to N][: WHY]"),
    Intent.DISABLE_SELF_EDIT: (rf"disable self-edit{_REASON}?", "disable self-edit[: WHY]"),
    Intent.PROMOTE_TIER: (rf"promote{_TO_TIER}{_REASON}", "promote [to N]: WHY"),
    Intent.ENABLE_SELF_EDIT_PERMANENT: (rf"enable self-edit{_REASON}", "enable self-edit: WHY"),
    Intent.ENABLE_SELF_EDIT_SESSION: (
        rf"enable self-edit for this session {_APPROVAL}{_REASON}",
        "enable self-edit for this session APPROVAL: WHY",
    ),
    Intent.GRANT_PER_CALL_SELF_EDIT: (rf"grant self-edit {_APPROVAL}{_REASON}", "grant self-edit APPROVAL: WHY"),
    Intent.AUTHORISE_SENSITIVE: (rf"authori[sz]e {_APPROVAL}{_REASON}", "authorise APPROVAL: WHY"),
}
_READ = {intent: re.compile(pattern, re.IGNORECASE | re.DOTALL) for intent, (pattern, _) in COMMANDS.items()}


def command_in(body: str) -> Understood | None:
    """Read a message that is exactly a command; None for all others."""
    words = " ".join(body.split()).rstrip("?!.") if "\n" not in body.strip() else body.strip()
    for intent, pattern in _READ.items():
        if (found := pattern.fullmatch(words)) is not None:
            return Understood(intent=intent, args=_given(found.groupdict()), confidence=100, by="command")
    return None


def _given(groups: Mapping[str, str | None]) -> dict[str, Any]:
    named = {name: value.strip() for name, value in groups.items() if value is not None}
    return {**named, "to_tier": int(named["to_tier"])} if "to_tier" in named else dict(named)


FORM: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "intent": {"type": "string", "enum": [intent.value for intent in Intent]},
        "args": {
            "type": "object",
            "properties": {
                "task": {"type": "string"},
                "approval": {"type": "string"},
                "skill": {"type": "string"},
                "to_tier": {"type": "integer", "minimum": 0, "maximum": HIGHEST_TIER},
                "reason": {"type": "string"},
            },
            "required": [],
            "additionalProperties": False,
        },
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["intent", "args", "confidence"],
    "additionalProperties": False,
}


def from_answer(data: Mapping[str, Any], model: str) -> Understood:
    """Read a model's guess; one that is not sure enough means nothing, and is kept as it was."""
    if data["confidence"] < SURE_ENOUGH:
        why = f"{model} was {data['confidence']} of 100 sure that it is {data['intent']}, and {SURE_ENOUGH} are needed"
        return Understood(intent=Intent.FREE_FORM, args={"guess": dict(data)}, by=model, why=why)
    args = {name: value for name, value in data["args"].items() if value != ""}
    return Understood(intent=Intent(data["intent"]), args=args, confidence=data["confidence"], by=model)
