"""Files that a build tool runs by their nature: what a command writes to one is judged as what it will be run as."""

import json
import re
from collections.abc import Iterator

from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.words import UNKNOWN, Word

_LONGEST = 16_000
_MOST_COMMANDS = 200
_DEEPEST = 50
_TARGET = re.compile(r"(?m)^([\w./%$(){} -]+?)\s*:(?![=:])([^;=\n#]*)")
# A line of a recipe, or what stands behind a semicolon in the line that names the target.
_RECIPE = re.compile(r"(?:[\t ]+|[\w./%$(){} -]+:(?!=)[^;=\n#]*;)[@+-]*\s*(\S.*)$")
_MAKE_SHELL = re.compile(r"\$[({]shell\s+([^\n]*)[)}]|!=([^\n]*)")
_MAKE_VARIABLE = re.compile(r"\$[({][\w.@%<^?*+/:=,-]*[)}]|\$[@<^?*%]")
_MAKE_ASSIGNED = re.compile(r"(?m)^(\w+)[ \t]*[:?]{0,2}=[ \t]*([^\n#]*)")
_SET_BY_MAKE = {
    "MAKE": "make",
    "CC": "cc",
    "CXX": "g++",
    "RM": "rm -f",
    "CURDIR": ".",
    "PWD": ".",
    "HOME": "~",
    "SHELL": "sh",
    "AR": "ar",
}
# What a rule makes, and what of: files of the repository where nothing else is said.
_OF_A_RULE = dict.fromkeys("@<^?*+%", "x")
_NESTED = 3
_PAIR = re.compile(r'"([\w:.-]+)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_LISTED = re.compile(
    r"(?m)^\s*(?:-\s+)?(?:(?:cmd|sh|run|entry|command|args):\s*[|>]?\s*|-\s+|\w+:\s+|commands\w*\s*=\s*|\s+)([\"']?)(\S.*?)\1$"
)
# How a program of Rust starts another: all of one statement.
_STARTED = re.compile(r'Command::new\(\s*("[^;]*)')
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
# How a script of Groovy or Kotlin does.
_EXECUTED = re.compile(r"""(["'])([^"'\n]+)\1\s*\.\s*execute\s*\(""")
_COMMAND_LINE = re.compile(r"""\bcommandLine\s*\(?\s*((?:["'][^"'\n]*["']\s*,?\s*)+)""")
_EITHER = re.compile(r"""(["'])([^"'\n]*)\1""")
_OF_THE_MACHINE = re.compile(
    r"~/|expanduser|\.(?:ssh|aws|netrc|npmrc|kube|gnupg|docker|config|pgpass)\b|\bid_[a-z]|/(?:etc|root|proc|var|run)/"
)
_PYTHON, _MAKE, _LISTS = (".py",), ("makefile", ".mk", "justfile"), (".yml", ".yaml", "procfile", "tox.ini")


def check_written(judge: Judge, use: Use) -> None:
    """Ask about a file that a build tool runs, where what is written to it would be refused as a command."""
    target, content = use.arguments.operands
    for language, text in commands_in(target.text, content.text):
        refused = judge.refusal(language, Word(text, content.taint), use.scope, use.call)
        # Names of secrets within the repository stand in many tests that read none.
        if refused and (language == "shell" or refused != "read-secret" or _OF_THE_MACHINE.search(text)):
            judge.report("written-to-run", use.call.text)
            return


def commands_in(path: str, text: str) -> Iterator[tuple[str, str]]:
    """Give the commands and the code in a file of a build tool, each with its language."""
    name, text = path.rsplit("/", 1)[-1].lower(), text[:_LONGEST]
    if name.endswith(_MAKE):
        yield from (("shell", command) for command in recipes(text))
    elif name == "package.json":
        yield from (("shell", command) for _, command in scripts_of(text))
    elif name.endswith(_PYTHON):
        yield "python", text
    elif name.endswith(_LISTS):
        yield from (("shell", found[2]) for found in _first(_LISTED, text))
    elif name == ".envrc":
        yield "shell", text
    else:
        yield "other", text
        for found in _first(_STARTED, text):
            yield "argv", json.dumps(_STRING.findall(found[1]))
        for found in _first(_EXECUTED, text):
            yield "shell", found[2]
        for found in _first(_COMMAND_LINE, text):
            yield "argv", json.dumps([text for _, text in _EITHER.findall(found[1])])


def _first(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """Give the first places where a pattern is found."""
    return [found for found, _ in zip(pattern.finditer(text), range(_MOST_COMMANDS), strict=False)]


def recipes(text: str, wanted: set[str] | None = None) -> Iterator[str]:
    """Give the command lines of a makefile, the values of its own variables unknown; those of the targets that are wanted."""
    text = text.replace("\\\n", " ")
    values = _values(text)
    for found in _first(_MAKE_SHELL, text):
        yield _as_shell(found[1] or found[2] or "", values)
    needed = _needed(text, wanted) if wanted is not None else None
    is_needed = True
    values.update(_OF_A_RULE)
    for line in text.split("\n"):
        target = _TARGET.match(line)
        if target:
            values["@"] = target[1].split()[0] if target[1].strip() else "x"
            is_needed = needed is None or "%" in target[1] or not needed.isdisjoint(target[1].split())
        command = _RECIPE.match(line)
        if command and is_needed:
            yield _as_shell(command[1], values)


def _needed(text: str, wanted: set[str]) -> set[str]:
    """Give the targets that are made on the way to some, the first one where none is named."""
    needs = [(found[1].split(), found[2].split()) for found in _TARGET.finditer(text)]
    plain = [target for targets, _ in needs for target in targets if not target.startswith(".")]
    needed = set(wanted) or set(plain[:1])
    for _ in range(_DEEPEST):
        more = {need for targets, names in needs if not needed.isdisjoint(targets) for need in names}
        if more <= needed:
            break
        needed |= more
    return needed


def _as_shell(text: str, values: dict[str, str]) -> str:
    """Write a line of a makefile as the shell gets it."""
    for _ in range(_NESTED):
        text = _MAKE_VARIABLE.sub(lambda found: values.get(found[0].strip("$(){}"), UNKNOWN), text)
    return text.replace("$$", "$")


def _values(text: str) -> dict[str, str]:
    """Give the values of the variables that a makefile sets once, and of those that make sets itself."""
    values, found = dict(_SET_BY_MAKE), _first(_MAKE_ASSIGNED, text)
    names = [each[1] for each in found]
    values.update({each[1]: each[2].strip() for each in found if names.count(each[1]) == 1})
    return values


def scripts_of(text: str) -> list[tuple[str, str]]:
    """Give the scripts of a package by their names, or every text in it where it can't be read as a whole."""
    try:
        whole = json.loads(text)
    except ValueError:
        return [(found[1], found[2].replace('\\"', '"')) for found in _first(_PAIR, text)]
    scripts = whole.get("scripts") if isinstance(whole, dict) else None
    return [pair for pair in scripts.items() if isinstance(pair[1], str)] if isinstance(scripts, dict) else []
