"""A sample ACP session: lines as the proxy writes them to the spool, and their import into a log."""

import json
from pathlib import Path
from typing import Any

from decklog import Decklog, EntryKind
from decklog.agents.intake import run_intake
from decklog.agents.spool import Spool

SessionLine = tuple[dict[str, Any], dict[str, Any]]


class Session:
    """Writes the lines of one session in one connection."""

    def __init__(self, folder: Path, program: str = "stub", session: str = "s1", connection: str = "c1", **facts: Any) -> None:
        self.spool = Spool(str(folder / "spool"))
        self._program, self._session = program, session
        self._facts = {"c": connection, **facts}
        self.number = 0
        (folder / "spool").mkdir(exist_ok=True)

    def tell(self, message: dict[str, Any], **facts: Any) -> None:
        self.number += 1
        own = {**self._facts, "n": self.number, **facts}
        line = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.spool.put(self._program, self._session, {"session": self._session, "acp": own}, line, is_synced=False)

    def begin(self, method: str = "session/new", **result: Any) -> "Session":
        about = {"client": "zed", "version": "7"}
        asked = {"cwd": "/repo", "servers": ["tools"]}
        self.tell({"id": 1, "result": {"sessionId": self._session, **result}}, re=method, asked=asked, about=about)
        return self

    def prompt(self, text: str, number: int = 2) -> None:
        prompt = [{"type": "text", "text": text}]
        self.tell({"id": number, "method": "session/prompt", "params": {"prompt": prompt}}, **{"from": "editor"})

    def answer(self, number: int = 2, **result: Any) -> None:
        self.tell({"id": number, "result": {"stopReason": "end_turn", **result}}, re="session/prompt", **{"from": "agent"})

    def update(self, what: str, /, **update: Any) -> None:
        params = {"sessionId": self._session, "update": {"sessionUpdate": what, **update}}
        self.tell({"method": "session/update", "params": params}, **{"from": "agent"})

    def say(self, text: str, **more: Any) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text}, **more)

    def ask(self, call: dict[str, Any], number: int = 0) -> None:
        options = [{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]
        params = {"toolCall": call, "options": options}
        self.tell({"id": number, "method": "session/request_permission", "params": params}, **{"from": "agent"})

    def decide(self, option: str, number: int = 0, **facts: Any) -> None:
        outcome = {"outcome": {"outcome": "selected", "optionId": option}}
        self.tell({"id": number, "result": outcome}, re="session/request_permission", **facts)

    def end(self) -> None:
        self.number = 2**53 - 1
        self.tell({}, end=True)

    def run_intake(self, log: Decklog) -> None:
        assert run_intake(log, self.spool).unread == 0


def list_bodies(log: Decklog, run_id: str = "stub-s1") -> list[tuple[str | None, str | None]]:
    """Return the subtypes and bodies of a run's entries, without changes of records."""
    found = log.journal.find(run_id, oldest_first=True, limit=200)
    return [(entry.subtype, entry.body) for entry in found if entry.kind != EntryKind.CHANGE]


def facts(log: Decklog, subtype: str, run_id: str = "stub-s1") -> list[dict[str, Any]]:
    found = log.journal.find(run_id, oldest_first=True, limit=200)
    return [entry.payload for entry in found if entry.subtype == subtype and isinstance(entry.payload, dict)]
