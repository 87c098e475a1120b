"""Build the model providers of the settings: agent programs, scripts and plug-ins."""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from decklog.agents.sessions import charge_of_session
from decklog.conductor import commands
from decklog.conductor.agents.description import LONGEST_ARGUMENT, Description, agent_command, describe
from decklog.conductor.agents.stream import Follower, StreamEvent, StreamReader, parse_reset_time
from decklog.conductor.commands import Command
from decklog.conductor.git.repository import write_git_directory
from decklog.conductor.git.workspaces import remove_folder
from decklog.core.clock import Clock
from decklog.core.errors import DecklogError, Invalid
from decklog.core.plugins import PluginKind, load_plugin, report_failures
from decklog.guard.sandbox.sandbox import Sandbox, SandboxKind
from decklog.guard.shell.spool import read_output
from decklog.log import Decklog
from decklog.models.composer import Prompt
from decklog.models.provider import ModelReply, ModelRequest, Provider
from decklog.models.settings import ModelChoice, ModelSettings


def provider_factory(
    log: Decklog,
    settings: ModelSettings,
    folder: Path,
    *,
    read: Callable[[str], bytes | None],
    sandbox: SandboxKind = SandboxKind.AUTO,
    end_reason: Callable[[], str | None] = lambda: None,
) -> Callable[[ModelChoice], Provider]:
    """Return a function that builds a provider. Programs run in `folder`; `read` returns scripts."""

    def make(choice: ModelChoice) -> Provider:
        match choice.provider:
            case "scripted":
                return Scripted.from_json(read(choice.script), choice.script)
            case "agent":
                return replace(_program(log, settings, choice, folder, sandbox), end_reason=end_reason)
        with report_failures(PluginKind.MODEL, choice.provider):
            provider: Provider = load_plugin(PluginKind.MODEL, choice.provider)(choice)
        return provider

    return make


def _program(log: Decklog, settings: ModelSettings, choice: ModelChoice, folder: Path, sandbox: SandboxKind) -> "AgentModel":
    found = settings.agents.get(choice.agent) or describe(choice.agent, {"extends": choice.agent})
    agent = replace(found, model=choice.model) if choice.model else found
    return AgentModel(description=agent, folder=folder, clock=log.clock, sandbox=sandbox, log_file=log.db.file)


Script = Callable[[Prompt], "str | ModelReply"]


class Scripted:
    """Answers by a script. Figures are derived from the text, so the same conversation always costs the same."""

    def __init__(self, script: Script, *, model: str = "scripted") -> None:
        self._script = script
        self._model = model

    @classmethod
    def by_digest(cls, answers: Mapping[str, str], *, model: str = "scripted") -> "Scripted":
        """Replay recorded conversations by their digests. An unknown one is an error that names it."""

        def script(prompt: Prompt) -> str | ModelReply:
            if prompt.digest in answers:
                return answers[prompt.digest]
            return ModelReply(error_class="unscripted", error=f"the script has no conversation {prompt.digest}")

        return cls(script, model=model)

    @classmethod
    def from_json(cls, content: bytes | None, name: str, *, model: str = "scripted") -> "Scripted":
        """Parse recorded conversations: a JSON object of digests and answers."""
        try:
            answers = json.loads(content or b"null")
        except ValueError as problem:
            raise Invalid(f"the script {name} is not JSON: {problem}", field="script") from problem
        if not isinstance(answers, dict) or not all(isinstance(text, str) for text in answers.values()):
            raise Invalid(f"the script {name} must be an object of digests and answers", field="script")
        return cls.by_digest(answers, model=model)

    def reply(self, prompt: Prompt, request: ModelRequest) -> ModelReply:  # noqa: ARG002
        reply = self._script(prompt)
        if isinstance(reply, ModelReply):
            return reply
        usage = {"input_tokens": prompt.tokens, "output_tokens": max(1, len(reply) // 4)}
        return ModelReply(text=reply, model=self._model, usage=usage)


_CLASSES = {401: "login", 403: "login", 408: "overload", 413: "context", 429: "quota", 529: "overload"}
_LONGEST_SECONDS = 32 * 86400.0


def failed(problem: Any) -> ModelReply:
    """Return an error of either library as a reply."""
    status = getattr(problem, "status_code", None)
    if type(problem).__name__ == "APITimeoutError":
        error_class = "timeout"
    elif status is None:
        # The connection was refused or lost.
        error_class = "overload"
    else:
        error_class = _CLASSES.get(status) or ("overload" if status >= 500 else "refused")
    return ModelReply(error_class=error_class, error=str(problem)[:500], retry_seconds=_seconds(problem))


def _seconds(problem: Any) -> float | None:
    """Parse the duration of a rate limit in the header of a response."""
    stated: Any = getattr(getattr(problem, "response", None), "headers", {}).get("retry-after")
    try:
        seconds = float(stated)
    except (TypeError, ValueError):
        return None
    return seconds if 0 <= seconds <= _LONGEST_SECONDS else None


# How long a program may outlive the process that started it.
_GRACE_SECONDS = 5.0
_LONGEST_SAID = 300
_ENDINGS = {"timed_out": "timeout", "lost": "killed", "abandoned": "killed"}


@dataclass(frozen=True, kw_only=True)
class AgentModel:
    """Answers with the coding agent of a description.

    The agent sees no file of the repository, so a change can't influence it by settings.
    """

    description: Description
    folder: Path
    clock: Clock
    sandbox: SandboxKind = SandboxKind.AUTO
    log_file: str | None = None
    end_reason: Callable[[], str | None] = lambda: None

    def reply(self, prompt: Prompt, request: ModelRequest) -> ModelReply:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        scratch = Path(tempfile.mkdtemp(prefix="call-", dir=self.folder))
        try:
            schema = json.dumps(request.schema, sort_keys=True, ensure_ascii=False)
            form = f"Answer with one JSON object of this JSON Schema, and with nothing else; use no tools:\n{schema}"
            return self._reply_in(scratch, f"{prompt.text}\n{form}\n", request)
        finally:
            remove_folder(scratch)

    def _reply_in(self, scratch: Path, text: str, request: ModelRequest) -> ModelReply:
        agent, prompt_file = self.description, scratch / "prompt.md"
        prompt_file.write_text(text, encoding="utf-8", errors="replace")
        # Some programs only work in a repository; this one is empty.
        write_git_directory(scratch / "tree/.git", branch="none")
        if agent.prompt == "argument" and len(text.encode(errors="replace")) > LONGEST_ARGUMENT:
            return ModelReply(error_class="context", error='the prompt is too long for an argument; use prompt = "file"')
        mark = hashlib.sha256(os.fsencode(scratch)).hexdigest()[:32]
        try:
            ended = commands.run(self._command(scratch, prompt_file, text, mark, request), self.end_reason)
        except (DecklogError, OSError) as problem:
            return ModelReply(error_class="failed", error=f"{agent.name} can't be started: {problem}")
        reader = StreamReader(agent)
        lines = Follower(scratch / "command").rest()
        events = [*(event for line in lines for event in reader.read(line)), *reader.rest()]
        return self._reply_of(events, ended, read_output(scratch / "command").text[-_LONGEST_SAID:])

    def _command(self, scratch: Path, prompt_file: Path, text: str, mark: str, request: ModelRequest) -> Command:
        agent = self.description
        values = {
            "prompt": text,
            "prompt_file": prompt_file,
            "model": agent.model,
            "turns": agent.turns,
            "place": scratch / "tree",
        }
        kind = Sandbox(kind=self.sandbox).resolve_kind().kind
        return agent_command(
            agent,
            agent.arguments(values, is_sandboxed=kind is not SandboxKind.NONE),
            kind=kind,
            readable=(str(prompt_file),),
            mark=mark,
            root=scratch / "tree",
            folder=scratch / "command",
            log_file=self.log_file,
            input=_input(agent.prompt, prompt_file, text),
            timeout_seconds=request.seconds,
            grace_seconds=_GRACE_SECONDS,
        )

    def _reply_of(self, events: Sequence[StreamEvent], ended: dict[str, Any], output: str) -> ModelReply:
        error = next((event for event in reversed(events) if event.error_class is not None), None)
        model = next((event.taken["model"] for event in events if event.taken.get("model")), None)
        session = next((event.taken["session"] for event in events if event.taken.get("session")), None)
        common: dict[str, Any] = {"model": self.description.model or model, "usage": _usage(events)}
        # A later import of the program's sessions knows it by this.
        common["answer_id"] = charge_of_session(session, 1)
        # An error that the agent recovered from is followed by another event about the end.
        if error is not None and error is next((one for one in reversed(events) if one.kind in ("error", "end")), None):
            return ModelReply(
                error_class=error.error_class, error=_text(error)[-500:], retry_seconds=self._seconds(error), **common
            )
        if ended["reason"] != "exited" or ended["exit_code"] != 0:
            error_class = _ENDINGS.get(str(ended["reason"]), "failed")
            how = f"it ended: {ended['reason']}, exit code {ended['exit_code']}"
            if local := self.description.local_files:
                how += f" (it is started in an empty folder: write the whole path of {local[0]})"
            return ModelReply(error_class=error_class, error=f"{how}: {' '.join(output.split())}", **common)
        return ModelReply(text=self._answer(events), **common)

    def _answer(self, events: Sequence[StreamEvent]) -> str:
        """Return the last message. The whole output counts if the program has no event stream."""
        if self.description.stream == "none":
            return "\n".join(_text(event) for event in events)
        return next((text for event in reversed(events) if event.kind not in ("noise", "thought") and (text := _text(event))), "")

    def _seconds(self, error: StreamEvent) -> float | None:
        now = self.clock.now()
        until = parse_reset_time(error.taken.get("until") or error.taken.get("text"), now)
        return None if until is None else (until - now).total_seconds()


def _input(prompt: str, prompt_file: Path, text: str) -> Path | None:
    """Return the file of standard input: the prompt as it is, or as a message of a program that reads lines of JSON."""
    if prompt != "stream-json":
        return prompt_file if prompt == "stdin" else None
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    path = prompt_file.with_suffix(".jsonl")
    path.write_text(json.dumps({"type": "user", "message": message}) + "\n", encoding="utf-8")
    return path


def _text(event: StreamEvent) -> str:
    return str(event.taken.get("text") or "")


def _usage(events: Sequence[StreamEvent]) -> dict[str, int]:
    total: dict[str, int] = {}
    for event in events:
        for name, value in (event.usage or {}).items():
            total[name] = total.get(name, 0) + value
    return total
