"""Two agents and a person work on a repository; blame and why name them, before and after a rebase."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from decklog.agents.intake import run_intake
from decklog.agents.spool import Spool
from decklog.location.locate import locate, spool_folder
from decklog.log import Decklog
from decklog.provenance.blame import blame_file
from decklog.provenance.git import GitRepository

_FILE = "prices.py"
_FIRST = """def total(prices):
    result = 0
    for price in prices:
        result += price
    return result
"""
_TAX = """def with_tax(amount, rate=0.19):
    return amount * (1 + rate)
"""
_CHECKED = """def with_tax(amount, rate=0.19):
    if amount < 0:
        raise ValueError("a price is at least 0")
    return amount * (1 + rate)
"""
_LABEL = 'def label(amount):\n    return f"{amount:.2f} EUR"\n'
_SESSIONS = {"claude": "tax", "codex": "euros"}
_PERSON = {"NAME": "Ana", "EMAIL": "ana@example.org"}


class OriginDemo:
    """The demonstration in one folder. Agents are played by calls of the hook program, as their own programs call it."""

    def __init__(self, folder: Path, target: str, say: Callable[[str], None]) -> None:
        self.repository = folder / "shop"
        self.target = target
        self._say = say
        self._calls = 0

    def play(self) -> bool:
        """Run the demonstration; return whether blame is the same after the rebase."""
        with Decklog.open(self.target, migrate=True):
            pass
        self._start()
        self._claude()
        self._codex()
        self._person()
        self._take_in()
        before = self._origins()
        self._show("blame", _FILE)
        self._say("\nWhy is line 8 as it is?\n")
        self._show("why", f"{_FILE}:8")
        self._rebase()
        self._say("\nThe branch was rebased: every commit has another id. Blame once more:\n")
        self._show("blame", _FILE)
        return self._origins() == before

    # Who works

    def _start(self) -> None:
        self.repository.mkdir(parents=True)
        self._git("init", "-q", "-b", "main")
        self._put(_FILE, _FIRST)
        self._commit("Add up prices")
        self._git("checkout", "-q", "-b", "tax")
        self._say("A repository with one commit of Ana's. Claude Code and Codex work on it, and Ana too.\n")

    def _claude(self) -> None:
        self._hook("claude", "SessionStart", source="startup")
        self._hook("claude", "UserPromptSubmit", prompt="Prices need tax. Refuse negative amounts.")
        self._edit("claude", _FIRST + "\n\n" + _TAX)
        self._edit("claude", _FIRST + "\n\n" + _CHECKED)
        self._hook("claude", "Stop")
        self._commit("Add tax")

    def _codex(self) -> None:
        self._hook("codex", "SessionStart", source="startup")
        self._hook("codex", "UserPromptSubmit", prompt="Show amounts in euros.")
        command = {"command": f"cat label.txt >> {_FILE}"}
        call = self._begin("codex", "Bash", command)
        self._put(_FILE, self._text(_FILE) + "\n\n" + _LABEL)
        self._hook("codex", "PostToolUse", **call, tool_response={"stdout": ""})
        self._hook("codex", "Stop")
        self._commit("Show euros")

    def _person(self) -> None:
        self._put(_FILE, self._text(_FILE).replace("    result = 0\n", "    result = 0.0\n"))
        self._commit("Start with a float")

    def _rebase(self) -> None:
        self._git("checkout", "-q", "main")
        self._put("README.md", "A shop.\n")
        self._commit("Describe the shop")
        self._git("checkout", "-q", "tax")
        self._git("rebase", "-q", "main")

    # How they do it

    def _edit(self, program: str, text: str) -> None:
        old, new = self._text(_FILE), text
        names = {"file_path": str(self.repository / _FILE), "old_string": old, "new_string": new}
        call = self._begin(program, "Edit", names)
        self._put(_FILE, new)
        self._hook(program, "PostToolUse", **call, tool_response={"filePath": _FILE})

    def _begin(self, program: str, tool: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        self._calls += 1
        call = {"tool_name": tool, "tool_input": dict(arguments), "tool_use_id": f"call-{self._calls}"}
        self._hook(program, "PreToolUse", **call)
        return call

    def _hook(self, program: str, event: str, **fields: Any) -> None:
        """Call the hook program as an agent program does."""
        event_data = {"session_id": _SESSIONS[program], "cwd": str(self.repository), "hook_event_name": event, **fields}
        self._program("hook", program, given=json.dumps(event_data).encode())

    def _program(self, *words: str, given: bytes = b"") -> bytes:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("CLAUDE", "CODEX", "DECKLOG"))}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "decklog", *words],
            input=given,
            capture_output=True,
            check=False,
            cwd=self.repository,
            env={**own, "DECKLOG_DB": self.target},
        )
        if done.returncode != 0:
            raise RuntimeError(f"decklog {words[0]} failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def _show(self, *words: str) -> None:
        self._say(f"$ decklog {' '.join(words)}\n{self._program(*words).decode(errors='replace').rstrip()}")

    def _take_in(self) -> None:
        """Take in the events that hooks have spooled."""
        with Decklog.open(self.target) as log:
            run_intake(log, Spool(spool_folder(locate(self.target))))

    def _origins(self) -> list[tuple[str, str, tuple[str, ...]]]:
        repo = GitRepository.find(str(self.repository))
        assert repo is not None
        with Decklog.open(self.target) as log:
            found = blame_file(repo, log, _FILE)
        return [(line.text, line.origin.kind, line.origin.sessions) for line in found]

    def _text(self, path: str) -> str:
        return (self.repository / path).read_text(encoding="utf-8")

    def _put(self, path: str, text: str) -> None:
        (self.repository / path).write_text(text, encoding="utf-8")

    def _commit(self, message: str) -> None:
        self._git("add", "-A")
        self._git("commit", "-q", "-m", message)

    def _git(self, *words: str) -> None:
        people = {f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in _PERSON.items()}
        own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}
        subprocess.run(["git", *words], cwd=self.repository, env={**own, **people, **settings}, check=True, capture_output=True)
