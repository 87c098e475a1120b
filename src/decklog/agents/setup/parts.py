"""Our part of another program's file, with its installation and removal: JSON hooks, a marked block, or a whole file."""

import json
import os
import shlex
import tomllib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from decklog.agents.setup.json_text import Insertion, NotJson, added, parse, removed, with_insertions
from decklog.core.errors import Conflict, Invalid

NOTHING = "Nothing was changed."


class FilePart(ABC):
    """Our part of one file. Texts are unchanged file contents; None means that there is no file."""

    path: str

    @property
    def owner(self) -> str:
        """Key that distinguishes several parts of one file."""
        return ""

    @property
    @abstractmethod
    def wanted(self) -> Any:
        """The desired content, in a form that can be compared with `present`."""

    @abstractmethod
    def present(self, text: str) -> Any:
        """Return our current content; an empty value if there is none."""

    @abstractmethod
    def insertions(self, text: str | None) -> list[Insertion]:
        """Return the insertions for a text without our content."""

    @abstractmethod
    def without(self, text: str) -> str | None:
        """Return the text without our content; None if no file should remain."""

    def warnings(self, _text: str) -> list[str]:
        """Return reasons why the program can't read the file."""
        return []

    def completed(self, text: str | None) -> str:
        """Return a text without our content, completed with it."""
        return with_insertions(text or "", self.insertions(text))


def program_called(handler: Any, marker: str = "hook") -> str | None:
    """Return the program in a handler's `decklog hook` call; None for another command."""
    if not isinstance(handler, dict) or not isinstance(command := handler.get("command"), str):
        return None
    try:
        words = [command, *map(str, handler["args"])] if isinstance(handler.get("args"), list) else shlex.split(command)
    except ValueError:
        return None
    for before, word, after in zip(words, words[1:], words[2:], strict=False):
        if word == marker and os.path.basename(before) == "decklog":
            return after
    return None


class JsonPart(FilePart):
    """Our part of a JSON file."""

    def _value(self, text: str) -> Any:
        return {} if is_blank(text) else parse_file(self.path, text).value

    def _object(self, text: str, name: str) -> dict[str, Any]:
        """Return an object of the file by its name; empty if there is none."""
        value = self._value(text)
        found = value.get(name) if isinstance(value, dict) else None
        return found if isinstance(found, dict) else {}

    def _added(self, text: str | None, addition: dict[str, Any]) -> list[Insertion]:
        if text is None or is_blank(text):
            return [(len(text or ""), json.dumps(addition, indent=2, ensure_ascii=False) + "\n")]
        self._value(text)
        try:
            return added(text, addition)
        except Conflict as problem:
            raise Conflict(f"{self.path}: {problem.message}", hint=NOTHING, path=self.path) from None


class TomlPart(FilePart):
    """Our tables in a TOML file, each after a mark; all other text stays unchanged."""

    def _value(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError as problem:
            hint = f"Mend it by hand and try again. {NOTHING}"
            raise Invalid(f"{self.path} is no TOML: {problem}", hint=hint, path=self.path) from None

    def _added(self, text: str, tables: str) -> list[Insertion]:
        gap = "\n" if text and not text.endswith("\n") else ""
        added = gap + tables
        return [(len(text), added.replace("\n", "\r\n") if "\r\n" in text else added)] if tables else []


@dataclass(frozen=True)
class Hooks(JsonPart):
    """Hook groups below `hooks`, one list per event, as in Claude Code, Codex and Gemini CLI."""

    path: str
    program: str
    # The group of each event.
    events: dict[str, dict[str, Any]]
    takes_comments: bool = False

    @property
    def wanted(self) -> Any:
        return {event: [group] for event, group in self.events.items()}

    def present(self, text: str) -> Any:
        found: dict[str, list[Any]] = {}
        for event, groups in self._events(self._value(text)).items():
            ours = [self._ours_of(group) for group in groups if self._handlers(group)]
            if any(ours):
                found[event] = [group for group in ours if group]
        return found

    def insertions(self, text: str | None) -> list[Insertion]:
        return self._added(text, {"hooks": self.wanted})

    def without(self, text: str) -> str | None:
        while (path := self._first(self._value(text))) is not None:
            text = removed(text, path)
        return text

    def warnings(self, text: str) -> list[str]:
        if self.takes_comments:
            return []
        try:
            json.loads(text.removeprefix("\ufeff"))
        except ValueError:
            return [f"{self.path} has comments, or commas before a bracket: {self.program} ignores such a file, hooks and all"]
        return []

    # Current content

    def _events(self, value: Any) -> dict[str, list[Any]]:
        hooks = value.get("hooks") if isinstance(value, dict) else None
        if not isinstance(hooks, dict):
            return {}
        return {event: groups for event, groups in hooks.items() if isinstance(groups, list)}

    def _handlers(self, group: Any) -> list[Any]:
        handlers = group.get("hooks") if isinstance(group, dict) else None
        return handlers if isinstance(handlers, list) else []

    def _is_ours(self, handler: Any) -> bool:
        return program_called(handler) == self.program

    def _ours_of(self, group: Any) -> Any:
        ours = [handler for handler in self._handlers(group) if self._is_ours(handler)]
        return {**group, "hooks": ours} if ours else None

    def _first(self, value: Any) -> tuple[str | int, ...] | None:
        """Return the path of the first element to remove: our handler, or its largest container without other content."""
        for event, groups in self._events(value).items():
            for number, group in enumerate(groups):
                handlers = self._handlers(group)
                ours = [place for place, handler in enumerate(handlers) if self._is_ours(handler)]
                if not ours:
                    continue
                if len(handlers) > 1:
                    return ("hooks", event, number, "hooks", ours[0])
                if len(groups) > 1:
                    return ("hooks", event, number)
                return ("hooks", event) if len(value["hooks"]) > 1 else ("hooks",)
        return None


def is_blank(text: str) -> bool:
    """Return whether a file has only whitespace."""
    return not text.strip("\ufeff \t\r\n")


def parse_file(path: str, text: str) -> Any:
    """Parse a file as JSON; raise NotJson with the path and the position."""
    try:
        return parse(text)
    except NotJson as problem:
        raise NotJson(
            f"{path} is no JSON: {problem.message}", hint=f"Mend it by hand and try again. {NOTHING}", path=path
        ) from None


@dataclass(frozen=True)
class TextBlock(FilePart):
    """A block between two marks at the end of a Markdown file."""

    path: str
    body: str

    BEGIN = "<!-- decklog: begin. Written by `decklog setup agents-md`; --remove takes it out. -->"
    END = "<!-- decklog: end -->"

    @property
    def wanted(self) -> Any:
        return f"{self.BEGIN}\n{self.body.strip()}\n{self.END}"

    def present(self, text: str) -> Any:
        span = self._span(text)
        return text[slice(*span)].replace("\r\n", "\n") if span else ""

    def insertions(self, text: str | None) -> list[Insertion]:
        if not text:
            return [(0, self.wanted + "\n")]
        line_break = "\r\n" if "\r\n" in text else "\n"
        gap = "\n" if text.endswith("\n") else "\n\n"
        return [(len(text), f"{gap}{self.wanted}\n".replace("\n", line_break))]

    def without(self, text: str) -> str | None:
        span = self._span(text)
        if span is None:
            return text
        before, after = text[: span[0]], text[span[1] :].lstrip("\r\n")
        return (before + after if after else _ended(before)) or None

    def _span(self, text: str) -> tuple[int, int] | None:
        start = text.find("<!-- decklog: begin")
        end = text.find(self.END, start)
        return (start, end + len(self.END)) if 0 <= start < end else None


def _ended(text: str) -> str:
    """Return a text that ends with a single line break, as before a block was appended."""
    stripped = text.rstrip("\r\n")
    return stripped + ("\r\n" if "\r\n" in text else "\n") if stripped else ""


@dataclass(frozen=True)
class WholeFile(FilePart):
    """A file that only Decklog writes, recognised by a mark."""

    path: str
    content: str
    mark: str = "decklog"

    @property
    def wanted(self) -> Any:
        return self.content

    def present(self, text: str) -> Any:
        if self.mark not in text:
            raise Conflict(
                f"{self.path} is there already, and was not written by `decklog setup`",
                hint=f"Move it out of the way. {NOTHING}",
                path=self.path,
            )
        return text

    def insertions(self, _text: str | None) -> list[Insertion]:
        return [(0, self.content)]

    def without(self, text: str) -> str | None:
        self.present(text)
        return None
