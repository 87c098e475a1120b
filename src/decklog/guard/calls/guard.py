"""Check an action before it runs: trust, command policy and approvals."""

import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from decklog.core.errors import Refused, StillPending
from decklog.guard.policy import CommandVerdict, Decision, Policy, Publication, examine
from decklog.records.values import to_json

Command = list[str] | str
# What trust calls the running of a command.
_COMMAND = "run_cli"
# Returns why a command must not publish its commits, or None.
Gate = Callable[[Sequence[Publication], str], str | None]


class ApprovalAccess(Protocol):
    """What a guard needs of the approvals: to ask about one exact thing, and to use up what was granted for it."""

    def ask(self, run_id: str, question: str, *, by: str, about: object, **details: Any) -> Any: ...

    def use(self, run_id: str, subject_digest: str) -> Any: ...

    def find(self, run_id: str, *, subject_digest: str, limit: int) -> Any: ...


class TrustAccess(Protocol):
    """What a guard needs of trust: whether an action is permitted, and why or why not."""

    def may(self, action: str) -> Mapping[str, Any]: ...


class Unrestricted:
    """Permits every action, for programs with their own access control."""

    def may(self, action: str) -> Mapping[str, Any]:
        return {"action": action, "allowed": True, "reason": "this toolbox was opened without trust"}


def exact(command: Command, cwd: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return what an approval of a command is about: the arguments or the shell text, the directory, and what env it sets."""
    about: dict[str, Any] = {"shell" if isinstance(command, str) else "argv": command, "cwd": cwd}
    return {**about, "env": dict(env)} if env else about


def digest_of(about: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the exact command's canonical JSON."""
    return hashlib.sha256(to_json(about).encode()).hexdigest()


@dataclass(kw_only=True)
class Guard:
    """Decides for one run; what it cannot allow it raises."""

    run_id: str
    task_id: str | None
    asker: str
    root: str
    policy: Policy | None = None
    approvals: ApprovalAccess | None = None
    trust: TrustAccess | None = None
    gate: Gate | None = None

    def check_action(self, action: str) -> dict[str, Any]:
        """Ask trust about an action; return its answer for the record, or raise."""
        if self.trust is None:
            return {}
        answer = self.trust.may(action)
        if not answer["allowed"]:
            raise Refused(
                f"Trust does not permit {action}: {answer['reason']}",
                hint="Do what is permitted, or ask the owner for a higher level.",
                rule="trust",
                action=action,
            )
        return {"trust": str(answer["reason"])}

    def check_command(self, command: Command, cwd: str, env: Mapping[str, str] | None) -> dict[str, Any]:
        """Judge a command; return the decision for the record, or raise."""
        verdict, published = examine(command, self.policy, root=self.root, cwd=cwd, env=env)
        about = exact(command, cwd, env)
        if verdict.decision is not Decision.DENY and published and self.gate is not None:
            self._check_published(published)
        note = {"decision": verdict.decision.value, "rule": verdict.rule, "reason": verdict.reason}
        match verdict.decision:
            case Decision.ALLOW:
                return note
            case Decision.ASK:
                return {**note, **self._approved(about, verdict)}
            case Decision.DENY:
                raise Refused(
                    f"The policy denies this command ({verdict.rule}): {verdict.reason}",
                    hint="Reach the goal another way; no approval lets this through.",
                    rule=verdict.rule,
                    decision="deny",
                    command=verdict.command,
                )

    def _check_published(self, published: Sequence[Publication]) -> None:
        """Refuse to hand commits to others that the repository's gate holds."""
        assert self.gate is not None
        held = self.gate(published, self.root)
        if held is not None:
            raise Refused(held, hint="Have it reviewed: decklog review", rule="review", decision="deny")

    def _approved(self, about: dict[str, Any], verdict: CommandVerdict) -> dict[str, Any]:
        digest = digest_of(about)
        if self.approvals is None:
            raise Refused(
                f"The policy asks before this command ({verdict.rule}) and nobody can be asked: {verdict.reason}",
                hint=f"Open the toolbox with approvals and have {digest} granted, or allow it in the policy file.",
                rule=verdict.rule,
                decision="ask",
                digest=digest,
            )
        # Before the act, and in its own transaction: a crash must cost a question, never allow a second act.
        granted = self.approvals.use(self.run_id, digest)
        if granted is None:
            raise self._ask_person(about, digest, verdict)
        return {"approval_id": granted.id, "digest": digest}

    def _ask_person(self, about: dict[str, Any], digest: str, verdict: CommandVerdict) -> Refused | StillPending:
        """Ask a person, or find that it was asked before; return what to raise."""
        assert self.approvals is not None
        asked = self.approvals.find(self.run_id, subject_digest=digest, limit=1)
        if asked and str(asked[0].state) in ("open", "denied"):
            question = asked[0]
        else:
            # Ask again, once, if an approval is used up, expired or revoked.
            question = self._ask(about, verdict, key=f"command:{digest}:{asked[0].id if asked else 'first'}")
        details = {"rule": verdict.rule, "decision": "ask", "digest": digest, "approval_id": question.id}
        if str(question.state) == "denied":
            return Refused(f"This command was not approved ({question.id})", hint="Reach the goal another way.", **details)
        return StillPending(
            f"This command waits for approval {question.id} ({verdict.rule}): {verdict.reason}",
            hint=f"Call it again, unchanged, once it is granted: decklog approvals decide {question.id} granted --by NAME",
            **details,
        )

    def _ask(self, about: dict[str, Any], verdict: CommandVerdict, *, key: str) -> Any:
        assert self.approvals is not None
        command = about.get("shell") or shlex.join(about["argv"])
        return self.approvals.ask(
            self.run_id,
            f"May this run? {verdict.reason}\n{command}",
            by=self.asker,
            about=about,
            subject="command",
            source="toolbox",
            task_id=self.task_id,
            payload={**about, "rule": verdict.rule, "reason": verdict.reason, **self._tier()},
            key=key,
        )

    def _tier(self) -> dict[str, int]:
        """Return the autonomy level, if trust reports one."""
        tier = None if self.trust is None else self.trust.may(_COMMAND).get("tier")
        return {} if tier is None else {"tier": tier}
