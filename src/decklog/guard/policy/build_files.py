"""The commands in files of build tools: makefiles, and the scripts of package files."""

import json
import re
from collections.abc import Iterator
from itertools import islice

from decklog.guard.policy.use import Use
from decklog.guard.policy.words import UNKNOWN, Word

_AROUND = r"^(?:pre|post)"
_MOST = 200
_DEEPEST = 50
_TARGET = r"(?m)^([\w./%$(){} -]+?)\s*:(?![=:])([^;=\n#]*)"
# A line of a recipe, or the command behind a semicolon in the line of the target.
_RECIPE = r"(?:[\t ]+|[\w./%$(){} -]+:(?!=)[^;=\n#]*;)[@+-]*\s*(\S.*)$"
_SHELL = r"\$[({]shell\s+([^\n]*)[)}]|!=([^\n]*)"
_VARIABLE = r"\$[({][\w.@%<^?*+/:=,-]*[)}]|\$[@<^?*%]"
_ASSIGNED = r"(?m)^(\w+)[ \t]*[:?]{0,2}=[ \t]*([^\n#]*)"
_SET_BY_MAKE = {
    "MAKE": "make", "CC": "cc", "CXX": "g++", "RM": "rm -f", "CURDIR": ".", "PWD": ".", "HOME": "~", "SHELL": "sh", "AR": "ar",
}  # fmt: skip
_NESTED = 3


def recipes(text: str, wanted: set[str] | None = None) -> Iterator[str]:
    """Yield the command lines of a makefile, or of the targets that are wanted."""
    text = text.replace("\\\n", " ")
    assigned = [found.groups() for found in islice(re.finditer(_ASSIGNED, text), _MOST)]
    names = [name for name, _ in assigned]
    values = {**_SET_BY_MAKE, **{name: value.strip() for name, value in assigned if names.count(name) == 1}}
    for found in islice(re.finditer(_SHELL, text), _MOST):
        yield _as_shell(found[1] or found[2] or "", values)
    needed = _needed(text, wanted) if wanted is not None else None
    is_needed = True
    values |= dict.fromkeys("@<^?*+%", "x")
    for line in text.split("\n"):
        target = re.match(_TARGET, line)
        if target:
            values["@"] = next(iter(target[1].split()), "x")
            is_needed = needed is None or "%" in target[1] or not needed.isdisjoint(target[1].split())
        command = re.match(_RECIPE, line)
        if command and is_needed:
            yield _as_shell(command[1], values)


def _needed(text: str, wanted: set[str]) -> set[str]:
    """Return the targets that are made on the way to some; the first one where none is named."""
    needs = [(found[1].split(), found[2].split()) for found in re.finditer(_TARGET, text)]
    plain = [target for targets, _ in needs for target in targets if not target.startswith(".")]
    needed = set(wanted) or set(plain[:1])
    for _ in range(_DEEPEST):
        needed |= {need for targets, names in needs if not needed.isdisjoint(targets) for need in names}
    return needed


def _as_shell(text: str, values: dict[str, str]) -> str:
    """Expand the variables of a makefile's line."""
    for _ in range(_NESTED):
        text = re.sub(_VARIABLE, lambda found: values.get(found[0].strip("$(){}"), UNKNOWN), text)
    return text.replace("$$", "$")


def run_files(use: Use) -> None:
    """Judge the files that a build tool runs and the script has written."""
    wanted = {word.text for word in use.arguments.operands if "=" not in word.text}
    file = use.arguments.value("-f", "--file", "--makefile", "--justfile")
    for name in [file.text] if file is not None else use.program.words("files"):
        written = use.scope.written(name)
        if written is None:
            continue
        commands = list(recipes(written.text, wanted))
        if name.endswith(".json"):
            installs = wanted & use.policy.names("install_commands")
            names = wanted | (use.policy.names("install_scripts") if installs else set())
            commands = [
                command for name, command in _scripts(written.text) if name in names or re.sub(_AROUND, "", name) in names
            ]
        for command in commands:
            use.run_text("shell", Word(command, written.taint))


def _scripts(text: str) -> list[tuple[str, str]]:
    """Return the scripts of a package file by their names."""
    try:
        return [(name, command) for name, command in json.loads(text)["scripts"].items() if isinstance(command, str)]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
