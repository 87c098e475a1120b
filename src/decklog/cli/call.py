"""One invocation of the program: its arguments, and the options that every command shares."""

import os
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from decklog.core.errors import Invalid

if TYPE_CHECKING:
    from decklog.agents.spool import Spool
    from decklog.location.locate import LogLocation
    from decklog.log import Decklog

# Verbs with a hand-written command: the module in `commands`, and the function.
HAND_WRITTEN = {
    "approvals": {"show": ("records", "show_approval")},
    "runs": {"show": ("records", "show_run"), "timeline": ("records", "timeline"), "diff": ("records", "diff")},
    "tasks": {"board": ("records", "board")},
    "ledger": {"burn": ("overview", "burn")},
    "memory": {"model": ("recall_model", "model")},
    "trust": {"bind": ("access", "bind"), "sign": ("access", "sign"), "apply": ("access", "apply")},
}
# Stores that accept a sentence instead of a verb, and the command that takes it.
SENTENCES = {"feedback": ("mend", "file_feedback")}
# Shortcuts, which detect run, task, worker and fencing token.
SHORTCUTS = ("next", "done", "fail", "block", "note", "ask", "spend", "recall", "remember", "plan", "prime")
# Options of every command, at any position, that take a value. The guard's policy lists them too.
WITH_VALUE = ("--db", "--fields")
_AGENT = {"--agent": "agent", "--agent-id": "agent_id"}


class WrongUsage(Invalid):
    """The arguments of the command line are invalid."""

    code = "usage"


class Invocation:
    """Parses the common options at any position; the remaining words belong to the command."""

    def __init__(self, arguments: list[str]) -> None:
        self.json = False
        # Whether to omit empty fields; None omits them for agents, which pay for every character.
        self.brief: bool | None = None
        self.fields: str | None = None
        self.no_color = False
        self.db: str | None = None
        self.agent: str | None = None
        self.agent_id: str | None = None
        # The key file of the owner.
        self.key: str | None = None
        self.words: list[str] = []
        words = iter(arguments)
        for word in words:
            if word == "--":
                self.words += ["--", *words]
            elif word == "--json":
                self.json = True
            elif word == "--no-color":
                self.no_color = True
            elif word in ("--brief", "--no-brief"):
                self.brief = word == "--brief"
            elif word.partition("=")[0] in WITH_VALUE:
                flag, equals, value = word.partition("=")
                setattr(self, flag[2:], value if equals else next(words, ""))
            else:
                self.words.append(word)

    def check(self) -> None:
        """Raise WrongUsage for options without a value."""
        if self.db == "":
            raise WrongUsage("--db needs a value: a path, sqlite:///PATH or postgresql://…")
        if self.fields is not None and not self.chosen_fields:
            raise WrongUsage("--fields needs names, with commas between them", hint="Such as: --fields id,title,state")

    @property
    def chosen_fields(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in (self.fields or "").split(",") if name.strip())

    @property
    def is_brief(self) -> bool:
        """Whether to omit empty fields: as the option states, otherwise for agents."""
        if self.brief is not None:
            return self.brief
        from decklog.agents.caller import is_agent

        return self.agent is not None or is_agent()

    def take_agent(self, words: list[str], known: Container[str]) -> list[str]:
        """Remove `--agent` and `--agent-id` from a verb's words, unless they are options of the verb."""
        return self._take(_AGENT, words, known)

    def take_key(self, words: list[str], known: Container[str]) -> list[str]:
        """Remove the owner's `--key` from a verb's words, unless it is an option of the verb."""
        return self._take({"--key": "key"}, words, known)

    def _take(self, settings: dict[str, str], words: list[str], known: Container[str]) -> list[str]:
        rest: list[str] = []
        left = iter(words)
        for word in left:
            flag, equals, value = word.partition("=")
            if flag in settings and flag not in known:
                setattr(self, settings[flag], value if equals else next(left, None))
            else:
                rest.append(word)
                if word == "--":
                    rest += left
        return rest

    @property
    def wants_help(self) -> bool:
        options = self.words[: self.words.index("--")] if "--" in self.words else self.words
        return "--help" in options or "-h" in options

    @property
    def names_shortcut(self) -> bool:
        """Whether this is a shortcut, which runs without click."""
        return bool(self.words) and self.words[0] in SHORTCUTS and not self.wants_help

    @property
    def names_operation(self) -> bool:
        """Whether this is a store's verb, which runs without click."""
        if len(self.words) < 2 or self.wants_help:
            return False
        from decklog.log import STORES

        store, verb = self.words[0].replace("-", "_"), self.words[1]
        is_sentence = store in SENTENCES and " " in verb.strip()
        return store in STORES and verb not in HAND_WRITTEN.get(store, ()) and not is_sentence

    def open(self, *, writing: bool = True, create: bool = False) -> "Decklog":
        """Open the log of this call. A missing log is created only at an explicitly named location."""
        place = self.place()
        if not (create and place.is_named):
            place.must_exist()
        return place.open(read_only=not writing and place.is_read_only)

    @staticmethod
    @contextmanager
    def open_temporary() -> "Iterator[Decklog]":
        """Open a temporary log and delete it on exit."""
        from tempfile import TemporaryDirectory

        from decklog.log import Decklog

        with TemporaryDirectory(prefix="decklog-import-") as folder, Decklog.open(os.path.join(folder, "log.db")) as log:
            yield log

    def place(self) -> "LogLocation":
        """Return the location of the log of this call."""
        from decklog.location.locate import locate

        return locate(self.db)

    def spool(self) -> "Spool":
        """Return the spool of events for the log of this call."""
        from decklog.agents.spool import Spool
        from decklog.location.locate import spool_folder

        return Spool(spool_folder(self.place()))
