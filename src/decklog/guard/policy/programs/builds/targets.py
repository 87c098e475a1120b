"""Judging of build tools: their targets by name, the settings they are given, and files they run that the script has written."""

import json
import re

from decklog.guard.policy.programs.builds.written import recipes, scripts_of
from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.words import UNKNOWN, Word

_MAKES = {"make", "gmake", "bmake", "remake", "mingw32-make"}
_STDIN = {"-", "/dev/stdin"}
# What make runs while it reads a value; its own variables are written like a shell's substitution.
_SHELL = re.compile(r"\$[({]shell\s+(.*)[)}]", re.DOTALL)
# Those that put what they are given into the text of a recipe.
_MODES = {"--mode", "--configuration", "--profile", "-c"}
_PASS_ON = {"just", "task", "mask"}
_RUN_BY_SHELL = re.compile(r"`|\$\(")
_ENDS_COMMAND = re.compile(r"[;|&\n]")
_RUN_BY_RECIPE = re.compile(r"`|\$\$\(|\$\$\{")
_AROUND = re.compile(r"^(?:pre|post)")
_INSTALLS = {"install", "i", "ci", "add", "rebuild", "pack", "version"}
_AT_INSTALL = {"install", "prepare", "prepack", "postpack", "prepublish", "version"}
_FILES = {"make": ("GNUmakefile", "makefile", "Makefile"), "just": ("justfile", "Justfile"), "scripts": ("package.json",)}


def check_targets(judge: Judge, use: Use) -> None:
    """Judge the targets of a build tool, or the scripts of a package, by their names."""
    file = use.arguments.value("-f", "--file", "--makefile", "--justfile")
    if file is not None and file.text in _STDIN:
        judge.report("piped-to-interpreter", use.call.text)
    is_script = use.sub not in use.program.subcommands and use.program.kind == "scripts"
    for word in use.arguments.operands if is_script else use.operands:
        name, equals, value = word.text.partition("=")
        if equals and use.sub == "pkg set" and name.startswith("scripts."):
            judge.written("package.json", Word(json.dumps({"scripts": {name: value}}), word.taint), use.scope, use.call)
        elif equals:
            judge.role("assignment", word, use.call, use.scope)
            _check_value(judge, use, Word(value, word.taint))
        elif judge.policy.patterns["deploy_target"].search(name) and not _only_shows(use) and not _is_mode(use, word):
            judge.report("deploy-target", use.call.text)
        elif UNKNOWN in name:
            judge.report("dynamic-command", use.call.text)
    if use.name in _PASS_ON:
        for word in use.call.argv[1:]:
            _check_value(judge, use, word)
    _check_files(judge, use, file)


def _is_mode(use: Use, word: Word) -> bool:
    """Tell whether a word only says how something is built, as in `--mode production`."""
    places = [place for place, given in enumerate(use.call.argv) if given is word]
    return word.text in ("prod", "production") and all(use.call.argv[place - 1].text in _MODES for place in places)


def _only_shows(use: Use) -> bool:
    """Tell whether a build tool only says what it would do."""
    return use.name in _MAKES | _PASS_ON and use.arguments.has(("-n", "--dry-run", "--just-print", "--recon"))


def _check_value(judge: Judge, use: Use, word: Word) -> None:
    """Judge a value by what is run for it: at once, where make reads it, or when a recipe takes it in."""
    for found in _SHELL.finditer(word.text) if use.name in _MAKES else ():
        judge.report("option-runs-program", use.call.text)
        judge.run_text("shell", Word(found[1], word.taint), use.scope, use.call)
    runs = _RUN_BY_RECIPE if use.name in _MAKES else _RUN_BY_SHELL
    if use.name in _MAKES | _PASS_ON and runs.search(word.text):
        judge.run_text("shell", Word(f"echo {word.text.replace('$$', '$')}", word.taint), use.scope, use.call)
    elif _ENDS_COMMAND.search(word.text) and judge.refusal("shell", Word(f"echo {word.text}"), use.scope, use.call):
        judge.report("option-runs-program", use.call.text)


def _check_files(judge: Judge, use: Use, file: Word | None) -> None:
    """Judge the files that the tool runs and the script itself has written: what a person is asked about counts, too."""
    kind = "make" if use.name in _MAKES else use.name if use.name in _FILES else use.program.kind or ""
    wanted = {word.text for word in use.arguments.operands if "=" not in word.text}
    for name in [file.text] if file is not None else _FILES.get(kind, ()):
        written = use.scope.written(name)
        if written is None:
            continue
        commands = _scripts(written.text, wanted) if kind == "scripts" else list(recipes(written.text, wanted))
        for command in commands:
            judge.run_text("shell", Word(command, written.taint), use.scope, use.call)


def _scripts(text: str, words: set[str]) -> list[str]:
    """Give the scripts of a package that a package manager runs for the words it is given."""
    names = words | (_AT_INSTALL if not words.isdisjoint(_INSTALLS) else set())
    return [command for name, command in scripts_of(text) if name in names or _AROUND.sub("", name) in names]


def check_cmake(judge: Judge, use: Use) -> None:
    """Judge cmake: the tools it brings under `-E` as the programs they are like, else its targets."""
    texts = [word.text for word in use.call.argv]
    if "-E" not in texts:
        check_targets(judge, use)
        return
    inner = use.call.argv[texts.index("-E") + 1 :]
    likes = dict(pair.split("=") for pair in judge.policy.names["cmake_tools"])
    if inner and inner[0].text in likes:
        use.printed = judge.review(use.call.inner([Word(likes[inner[0].text]), *inner[1:]]), use.scope)
    else:
        judge.report("option-runs-program", use.call.text)
