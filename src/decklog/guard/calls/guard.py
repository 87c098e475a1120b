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
# Name in trust of the action that runs a command.
_COMMAND = "run_cli"
# Returns why a command must not publish its commits, or None.
Gate = Callable[[Sequence[Publication], str], str | None]


class ApprovalAccess(Protocol):
    """Interface of the approvals: ask about one exact subject, and use a granted approval."""

    def ask(self, run_id: str, question: str, *, by: str, about: object, **details: Any) -> Any: ...

    def use(self, run_id: str, subject_digest: str) -> Any: ...

    def find(self, run_id: str, *, subject_digest: str, limit: int) -> Any: ...


class TrustAccess(Protocol):
    """Interface of trust: return whether an action is permitted, with the reason."""

    def may(self, action: str) -> Mapping[str, Any]: ...


class Unrestricted:
    """Permits every action, for programs with their own access control."""

    def may(self, action: str) -> Mapping[str, Any]:
        return {"action": action, "allowed": True, "reason": "this toolbox was opened without trust"}


def describe_command(command: Command, cwd: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the subject of an approval: the arguments or the shell text, the directory and the set variables."""
    about: dict[str, Any] = {"shell" if isinstance(command, str) else "argv": command, "cwd": cwd}
    return {**about, "env": dict(env)} if env else about


def command_digest(about: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a subject's canonical JSON."""
    return hashlib.sha256(to_json(about).encode()).hexdigest()


@dataclass(kw_only=True)
class Guard:
    """Checks the actions and commands of one run; raises an error for those that are not allowed."""

    run_id: str
    task_id: str | None
    asker: str
    root: str
    policy: Policy | None = None
    approvals: ApprovalAccess | None = None
    trust: TrustAccess | None = None
    gate: Gate | None = None

    def check_action(self, action: str) -> dict[str, Any]:
        """Return trust's answer for the record; raise Refused if it does not permit the action."""
        if self.trust is None:
            return {}
        answer = self.trust.may(action)
        if not answer["allowed"]:
            raise Refused(
                f"Trust does not permit {action}: {answer['reason']}",
                hint="Use permitted actions, or ask the owner for a higher level.",
                rule="trust",
                action=action,
            )
        return {"trust": str(answer["reason"])}

    def check_command(self, command: Command, cwd: str, env: Mapping[str, str] | None) -> dict[str, Any]:
        """Return the decision on a command for the record; raise an error unless it may run."""
        verdict, published = examine(command, self.policy, root=self.root, cwd=cwd, env=env)
        about = describe_command(command, cwd, env)
        if verdict.decision is not Decision.DENY and published and self.gate is not None:
            self._check_publications(published)
        note = {"decision": verdict.decision.value, "rule": verdict.rule, "reason": verdict.reason}
        match verdict.decision:
            case Decision.ALLOW:
                return note
            case Decision.ASK:
                return {**note, **self._use_approval(about, verdict)}
            case Decision.DENY:
                raise Refused(
                    f"The policy denies this command ({verdict.rule}): {verdict.reason}",
                    hint="Find another way; this can't be approved.",
                    rule=verdict.rule,
                    decision="deny",
                    command=verdict.command,
                )

    def _check_publications(self, published: Sequence[Publication]) -> None:
        """Raise Refused for commits that the repository's review gate blocks."""
        assert self.gate is not None
        reason = self.gate(published, self.root)
        if reason is not None:
            raise Refused(reason, hint="Have it reviewed: decklog review", rule="review", decision="deny")

    def _use_approval(self, about: dict[str, Any], verdict: CommandVerdict) -> dict[str, Any]:
        digest = command_digest(about)
        if self.approvals is None:
            raise Refused(
                f"The policy requires approval of this command ({verdict.rule}), which this toolbox lacks: {verdict.reason}",
                hint=f"Open the toolbox with approvals and get {digest} granted, or allow the command in the policy file.",
                rule=verdict.rule,
                decision="ask",
                digest=digest,
            )
        # Use the approval before the command runs, in a separate transaction: after a crash, ask again rather than run twice.
        granted = self.approvals.use(self.run_id, digest)
        if granted is None:
            raise self._ask_person(about, digest, verdict)
        return {"approval_id": granted.id, "digest": digest}

    def _ask_person(self, about: dict[str, Any], digest: str, verdict: CommandVerdict) -> Refused | StillPending:
        """Ask a person, unless the question exists; return the error to raise."""
        assert self.approvals is not None
        asked = self.approvals.find(self.run_id, subject_digest=digest, limit=1)
        if asked and str(asked[0].state) in ("open", "denied"):
            question = asked[0]
        else:
            # Ask again, once, if an approval is used up, expired or revoked.
            question = self._create_question(about, verdict, key=f"command:{digest}:{asked[0].id if asked else 'first'}")
        details = {"rule": verdict.rule, "decision": "ask", "digest": digest, "approval_id": question.id}
        if str(question.state) == "denied":
            return Refused(f"This command was not approved ({question.id})", hint="Find another way.", **details)
        return StillPending(
            f"This command waits for approval {question.id} ({verdict.rule}): {verdict.reason}",
            hint=f"Repeat the same call once it is granted: decklog approvals decide {question.id} granted --by NAME",
            **details,
        )

    def _create_question(self, about: dict[str, Any], verdict: CommandVerdict, *, key: str) -> Any:
        assert self.approvals is not None
        command = about.get("shell") or shlex.join(about["argv"])
        return self.approvals.ask(
            self.run_id,
            f"May this command run? {verdict.reason}\n{command}",
            by=self.asker,
            about=about,
            subject="command",
            source="toolbox",
            task_id=self.task_id,
            payload={**about, "rule": verdict.rule, "reason": verdict.reason, **self._autonomy_level()},
            key=key,
        )

    def _autonomy_level(self) -> dict[str, int]:
        """Return the autonomy level, if trust reports one."""
        level = None if self.trust is None else self.trust.may(_COMMAND).get("tier")
        return {} if level is None else {"tier": level}
