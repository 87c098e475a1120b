"""Token usage, which is charged to Decklog's ledger."""

from typing import TYPE_CHECKING

from decklog.plugins.legacy.bazinga.base import CallRefused, Desk, answers, filled, given, one_of
from decklog.plugins.legacy.bazinga.program.reply import ProgramReply

if TYPE_CHECKING:
    from typing import Any

    from decklog.plugins.legacy.bazinga.program.usage import UsageValues

UNKNOWN_MODEL = "unknown"
GROUPINGS = ("agent_type", "agent_id")
_FAMILIES = ("haiku", "sonnet", "opus", "claude", "gpt", "gemini", "o1", "o3", "o4")


class Tokens(Desk):
    """Counts the tokens that agents used, and adds them up."""

    @answers
    def log_tokens(
        self, session_id: str, agent_type: str, tokens: int, agent_id: str | None = None, model: str | None = None
    ) -> None:
        """Count tokens that an agent used. They are spent already, so no budget refuses them; budgets show them."""
        if type(tokens) is not int or tokens < 0:
            raise CallRefused(f"tokens must be an integer of 0 or more, got {tokens!r}")
        charge(self, session_id, filled("agent_type", agent_type), tokens, agent_id, model)

    @answers
    def get_token_summary(self, session_id: str, by: str = "agent_type") -> dict[str, int]:
        """Add tokens up by agent_type or agent_id, with a total.

        The total's name is kept for it: an agent of that name is listed as `agent:total`.
        """
        one_of("grouping", by, GROUPINGS)
        from decklog.stores.money.ledger import SpendBy

        summed: Any = self.log.ledger.summary(by=SpendBy.AGENT if by == "agent_type" else SpendBy.AGENT_ID, run_id=session_id)
        sums = {_key(row["key"]): _tokens(row) for row in summed["rows"]}
        return {name: sums[name] for name in sorted(sums)} | {"total": sum(sums.values())}


def charge(
    desk: Desk,
    session_id: str,
    agent: str,
    tokens: int,
    agent_id: str | None = None,
    model: str | None = None,
    *,
    call_site: str | None = None,
) -> None:
    """Charge tokens of which nobody said what kind they are; they count as input."""
    desk.expect_session(session_id)
    desk.log.ledger.charge(
        given(model) or UNKNOWN_MODEL,
        input_tokens=tokens,
        run_id=session_id,
        agent=agent,
        agent_id=given(agent_id),
        call_site=call_site,
        enforce=False,
    )


def _key(name: str | None) -> str:
    if name is None:
        return "null"
    return f"agent:{name}" if name in ("total", "null") else name


def _tokens(row: "dict[str, Any]") -> int:
    from decklog.stores.money.records import TOKENS

    return sum(int(row[name]) for name in TOKENS)


# Commands

DESK = Tokens


def log_tokens(desk: Tokens, words: "UsageValues") -> ProgramReply:
    tokens = words.whole("tokens", low=0)
    assert tokens is not None
    agent_id, model = words.get("agent_id"), words.get("model")
    if agent_id is not None and model is None and agent_id.lower().startswith(_FAMILIES):
        agent_id, model = None, agent_id
    desk.log_tokens(words["session"], words["agent"], tokens, words.get("agent-id") or agent_id, model)
    return ProgramReply(said=f"Logged {tokens} tokens of {words['agent']}")


def token_summary(desk: Tokens, words: "UsageValues") -> ProgramReply:
    return ProgramReply(desk.get_token_summary(words["session"], words.text("by", "agent_type")))
