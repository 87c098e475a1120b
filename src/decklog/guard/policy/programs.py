"""Programs that start other programs or run code. The inner command or code is judged like any other."""

import json
import re
import sys
from collections.abc import Iterator
from itertools import dropwhile, islice
from typing import TYPE_CHECKING

from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, UNKNOWN_WORD, Arguments, Word

if TYPE_CHECKING:
    from decklog.guard.policy.engine import CommandCheck

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_STDIN = {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
_NAME_TESTS = ("-name", "-iname", "-path", "-ipath", "-wholename")
_MOST_ITEMS = 20
_AROUND = re.compile(r"^(?:pre|post)")
_MOST = 200
_DEEPEST = 50
_TARGET = re.compile(r"(?m)^([\w./%$(){} -]+?)\s*:(?![=:])([^;=\n#]*)")
# A line of a recipe, or the command behind a semicolon in the line of the target.
_RECIPE = re.compile(r"(?:[\t ]+|[\w./%$(){} -]+:(?!=)[^;=\n#]*;)[@+-]*\s*(\S.*)$")
_SHELL = re.compile(r"\$[({]shell\s+([^\n]*)[)}]|!=([^\n]*)")
_VARIABLE = re.compile(r"\$[({][\w.@%<^?*+/:=,-]*[)}]|\$[@<^?*%]")
_ASSIGNED = re.compile(r"(?m)^(\w+)[ \t]*[:?]{0,2}=[ \t]*([^\n#]*)")
_SET_BY_MAKE = {
    "MAKE": "make", "CC": "cc", "CXX": "g++", "RM": "rm -f", "CURDIR": ".", "PWD": ".", "HOME": "~", "SHELL": "sh", "AR": "ar",
}  # fmt: skip
_NESTED = 3


def start_inner(command: "CommandCheck") -> Word | None:
    """Judge the command or code that a program starts; return its output if the program passes it on."""
    program = command.program
    if program.get("builtin"):
        return _BUILTINS[program["builtin"]](command)
    if program.get("files"):
        run_files(command)
    printed = _run_after_markers(command) if program.get("after") else None
    if program.get("language"):
        _interpret(command)
        return printed
    if printed is not None or command.arguments.has(program.get("runs_nothing", ())):
        return printed
    if program.get("tools"):
        return _package_tool(command)
    operands = list(command.arguments.operands)
    if program.get("assigns"):
        _env_assignments(command, operands)
    operands = operands[program.get("skip", 0) :]
    if modules := [word for option, word in command.arguments.values if program.get("options", {}).get(option) == "module"]:
        operands = [Word("python"), Word("-m"), modules[0], *operands]
    if not program.get("runs") or not operands:
        return None
    if program.get("appends"):
        return _run_with_stdin_arguments(command, operands)
    if program.get("runs") == "argv":
        return _run_argv(command, operands)
    command.run_text("shell", Word(" ".join(word.text for word in operands), command.taint_except([])))
    for word in operands if len(operands) > 1 and not program.get("joined") else ():
        if " " in word.text:
            command.run_text("shell", word)
    return None


def _run_argv(command: "CommandCheck", inner: list[Word]) -> Word:
    """Judge the command behind a wrapper such as nohup, `uv run` or `docker exec`."""
    if inner[0].text in ("-c", "--command") and inner[1:]:
        return command.run_text("shell", inner[1])
    if inner[0].text in ("--version", "--help", "-V", "-h"):
        return UNKNOWN_WORD
    by_ending = command.program.get("run_by", {}).get(inner[0].text.rpartition(".")[2])
    if by_ending:
        inner = [Word(by_ending), *inner]
    place = command.arguments.value("-C", "--chdir") if command.program.get("assigns") else None
    scope = command.scope.inner() if place is not None else command.scope
    if place is not None:
        scope.cwd = command.paths.locate(place.text, scope.cwd)
    return command.for_call(command.call.inner(inner), scope).review()


def _env_assignments(command: "CommandCheck", operands: list[Word]) -> None:
    """Judge the variables that env sets, and return the command after them."""
    if operands and operands[0].text == "-":
        operands.pop(0)
    while operands and (found := _ASSIGNMENT.fullmatch(operands[0].text)):
        command.check_variable(found[1], Word(found[2], operands.pop(0).taint))


def _run_after_markers(command: "CommandCheck") -> Word | None:
    """Judge the commands after markers such as find's `-exec` or cargo's `--`."""
    words, entry = command.call.argv[1:], command.program
    markers, ends = entry["after"], entry.get("until", ())
    found = find_results(command) if entry.get("finds") else [UNKNOWN_WORD]
    if any(word.text in command.program.get("deletes", ()) for word in words):
        for word in found:
            command.check_path("delete", word)
    printed, place = None, 0
    while place < len(words):
        place += 1
        if words[place - 1].text not in markers:
            continue
        argv: list[Word] = []
        for word in command.operands if entry.get("finds") else ():
            command.check_path("searched", word)
        while place < len(words) and words[place].text not in ends:
            argv.append(words[place])
            place += 1
        while argv and argv[0].text.startswith("--"):
            argv.pop(0)
        if argv and entry.get("aliases"):
            aliases = dict(pair.split("=") for pair in command.policy.names[entry["aliases"]])
            if argv[0].text not in aliases:
                command.report(Event.STARTS_PROGRAM)
            argv[0] = Word(aliases.get(argv[0].text, "true"))
        if len(argv) == 1 and " " in argv[0].text:
            printed = command.run_text("shell", argv[0])
            continue
        for item in found if argv else ():
            filled = [Word(re.sub(r"\{[/.]*\}", lambda _, item=item: item.text, word.text), word.taint) for word in argv]  # type: ignore[misc]
            if entry.get("finds") == "fd" and filled == argv:
                filled.append(item)
            printed = command.run(filled, keeps_stdin=not entry.get("finds"))
    return printed


def find_results(command: "CommandCheck") -> list[Word]:
    """Return the possible results of a search: paths with the searched name, paths below the start, or the start."""
    if command.program.get("finds") == "fd":
        operands = [word.text for word in command.operands[1:] if word.text != "."]
        return [Word(f"{start.rstrip('/')}/{UNKNOWN}") for start in operands or ["."]]
    words = command.call.argv[1:]
    starts, place = [], 0
    while place < len(words) and (words[place].text in ("-H", "-L", "-P") or not words[place].text.startswith(("-", "(", "!"))):
        starts += [words[place]] if not words[place].text.startswith("-") else []
        place += 1
    starts = starts or [Word(".")]
    texts, endings = [word.text for word in words[place:]], []
    for at, text in enumerate(texts):
        if command.policy.patterns("filters").match(text) and not (at and texts[at - 1] in ("!", "-not")):
            value = texts[at + 1] if at + 1 < len(texts) else UNKNOWN
            endings.append(value.rsplit("/", 1)[-1] or UNKNOWN if text in _NAME_TESTS else UNKNOWN)
    return [Word(f"{start.text.rstrip('/')}/{ending}", start.taint) for start in starts for ending in endings] or starts


def _package_tool(command: "CommandCheck") -> Word | None:
    """Judge npx and similar programs: tools of the repository may run, others are reported."""
    tool_arguments = Arguments(command.call.argv[1:], command.program.get("options", ()), stop=True)
    operands = (
        tool_arguments.operands[1:] if [word.text for word in tool_arguments.operands[:1]] == ["run"] else tool_arguments.operands
    )
    if tool_arguments.has(command.program.get("fetches", ())):
        command.report(Event.PACKAGE)
    if tool_arguments.has(("-c", "--call")):
        return command.run_text("shell", tool_arguments.value("-c", "--call") or UNKNOWN_WORD)
    tool = operands[0].text if operands else ""
    if tool in command.policy.names[command.program["tools"]]:
        if command.policy.has_program(tool):
            return command.run(operands)
        for word in operands[1:3]:
            command.check("tool-command", word)
    elif not tool_arguments.has(("--no-install", "--no")):
        command.report(Event.PACKAGE)
    return None


def _run_with_stdin_arguments(command: "CommandCheck", operands: list[Word]) -> Word | None:
    """Judge the command that xargs or parallel builds from its standard input."""
    texts = [word.text for word in operands]
    place = texts.index(":::") if ":::" in texts else len(texts)
    given, operands = operands[place + 1 :], operands[:place]
    replace = [
        word.text for option, word in command.arguments.values if command.program.get("options", {}).get(option) == "replace"
    ]
    marker = replace[0] if replace else command.program["appends"]
    stdin, is_shell = command.call.stdin or UNKNOWN_WORD, command.program.get("runs") == "shell"
    by_line = bool(replace) or is_shell or command.arguments.has(("-d", "--delimiter", "-0", "--null", "-n", "-L"))
    items = [line for line in stdin.text.split("\n") if line.strip()] if by_line else [stdin.text.strip()]
    batches = [[item] for item in given] or [
        [Word(part, stdin.taint) for part in ([item] if by_line else item.split())] for item in items
    ]
    batches = [batch or [Word(UNKNOWN, stdin.taint)] for batch in batches or [[]]]
    for batch in batches if len(batches) <= _MOST_ITEMS else [*batches[:_MOST_ITEMS], [UNKNOWN_WORD]]:
        if any(marker in word.text for word in operands):
            argv = [Word(word.text.replace(marker, batch[0].text), word.taint | batch[0].taint) for word in operands]
        else:
            argv = [*operands, *batch]
        started = command.policy.programs.get(argv[0].text)
        if is_shell:
            command.run_text("shell", Word(" ".join(word.text for word in argv), command.stdin_taint))
        elif started is not None and command.stdin_taint & {"network", "decoded"}:
            command.for_call(command.call.inner([argv[0]])).use_program(argv[0].text, started)
        command.run(argv, keeps_stdin=False)
    return None


# Files of build tools: makefiles, and the scripts of package files


def recipe_lines(text: str, targets: set[str] | None = None) -> Iterator[str]:
    """Yield the command lines of a makefile, or only those of some targets."""
    text = text.replace("\\\n", " ")
    assigned = [found.groups() for found in islice(_ASSIGNED.finditer(text), _MOST)]
    names = [name for name, _ in assigned]
    values = {**_SET_BY_MAKE, **{name: value.strip() for name, value in assigned if names.count(name) == 1}}
    for found in islice(_SHELL.finditer(text), _MOST):
        yield _expand_make_variables(found[1] or found[2] or "", values)
    needed = _required_targets(text, targets) if targets is not None else None
    is_needed = True
    values |= dict.fromkeys("@<^?*+%", "x")
    for line in text.split("\n"):
        target = _TARGET.match(line)
        if target:
            values["@"] = next(iter(target[1].split()), "x")
            is_needed = needed is None or "%" in target[1] or not needed.isdisjoint(target[1].split())
        recipe = _RECIPE.match(line)
        if recipe and is_needed:
            yield _expand_make_variables(recipe[1], values)


def _required_targets(text: str, targets: set[str]) -> set[str]:
    """Return some targets with their prerequisites; by default the first target."""
    needs = [(found[1].split(), found[2].split()) for found in _TARGET.finditer(text)]
    plain = [target for targets, _ in needs for target in targets if not target.startswith(".")]
    needed = set(targets) or set(plain[:1])
    for _ in range(_DEEPEST):
        needed |= {need for targets, names in needs if not needed.isdisjoint(targets) for need in names}
    return needed


def _expand_make_variables(text: str, values: dict[str, str]) -> str:
    """Expand the variables in a line of a makefile."""
    for _ in range(_NESTED):
        text = _VARIABLE.sub(lambda found: values.get(found[0].strip("$(){}"), UNKNOWN), text)
    return text.replace("$$", "$")


def run_files(command: "CommandCheck") -> None:
    """Judge the build files that the script has written and a build tool runs."""
    targets = {word.text for word in command.arguments.operands if "=" not in word.text}
    file = command.arguments.value("-f", "--file", "--makefile", "--justfile")
    for name in [file.text] if file is not None else command.program.get("files", ()):
        written = command.scope.find_written_content(name)
        if written is None:
            continue
        commands = list(recipe_lines(written.text, targets))
        if name.endswith(".json"):
            names = targets | (
                command.policy.names["install_scripts"] if targets & command.policy.names["install_commands"] else set()
            )
            try:
                scripts = json.loads(written.text)["scripts"].items()
            except (ValueError, KeyError, TypeError, AttributeError):
                scripts = ()
            commands = [text for key, text in scripts if {key, _AROUND.sub("", key)} & names and isinstance(text, str)]
        for recipe in commands:
            command.run_text("shell", Word(recipe, written.taint))


# Interpreters


def _interpret(command: "CommandCheck") -> None:
    """Judge what an interpreter runs: code, a module, a script, or its standard input."""
    program = command.program
    language = command.policy.languages.get(command.name) or program["language"]
    code, module = program.get("code", ()), program.get("module", ())
    words = [word for word in command.call.argv[1:] if word.text != "--"]
    given = Arguments(words, program.get("options", ()), free=code, last=module, stop=True)
    operands = list(dropwhile(lambda word: word.text.startswith("+"), given.operands))
    is_empty = any(redirect.target.text == "/dev/null" and not redirect.writes for redirect in command.call.redirects)
    if given.has(program.get("interactive", ())) and not is_empty:
        _check_stdin(command, language)
    if name := given.value(*module):
        _check_module(command, name.text, operands)
    elif codes := [word for option, word in given.values if option in code]:
        _check_code(command, language, codes, operands)
    elif command.arguments.has(program.get("runs_nothing", ())):
        return
    elif not operands or operands[0].text in _STDIN or (language == "shell" and "-s" in given.flags):
        _check_stdin(command, language)
    else:
        _check_script(command, language, operands[0])
        script = operands[0].text.rsplit("/", 1)[-1]
        if script in command.policy.names["script_programs"]:
            command.run([Word(script), *operands[1:]])


def _check_code(command: "CommandCheck", language: str, codes: list[Word], rest: list[Word]) -> None:
    """Judge the code in the arguments of an interpreter, and the files that it processes."""
    if language == "shell":
        code, *rest = [*codes[:1], *rest] if not codes[0].text.startswith(("-", "+")) or not rest else rest
        command.run_text("shell", Word(code.text if code.text.strip() == UNKNOWN else "", code.taint))
        command.run_script(code.text.replace(UNKNOWN, "${UNKNOWN}"), command.call.stdin, rest[1:])
        return
    edits = command.arguments.has(command.program.get("edits", ()))
    for code in codes:
        command.run_text(language, code)
        text = Word(code.text.replace("\\n", "\n").replace("\\t", "\t"))
        for word in rest:
            command.check_path("write" if edits else "read", word)
            if edits and any(command.is_refused(role, text) for role in command.policy.file_roles(word.text)):
                command.report(Event.REFUSED_LATER)


def _check_stdin(command: "CommandCheck", language: str) -> None:
    """Judge code that is read from standard input."""
    if command.call.stdin is None:
        command.report(Event.OPAQUE_CODE)
        return
    command.run_text(language, command.call.stdin)
    for redirect in command.call.redirects:
        if not redirect.writes:
            command.check_path("run", redirect.target)


def _check_script(command: "CommandCheck", language: str, script: Word) -> None:
    """Judge a script by its content if it is known, else by its location."""
    if "://" in script.text:
        command.report(Event.NETWORK_CODE)
    written = command.scope.find_written_content(script.text)
    if written is not None:
        command.run_text(language, written)
    if script.content is not None or (script.taint and written is None):
        command.run_text(language, Word(script.content or UNKNOWN, script.taint))
    else:
        command.run_file(script)


def _check_module(command: "CommandCheck", module: str, rest: list[Word]) -> None:
    """Judge `python -m`: a program of this name, a listed module, or one of the standard library."""
    name = module.split(".")[0] if module.split(".")[0] in ("pip", "decklog") else module
    listed = f"python -m {module}"
    if program := command.policy.programs.get(listed):
        command.for_call(command.call.inner([Word(listed), *rest])).use_program(listed, program)
    elif name in command.policy.programs:
        command.run([Word(name), *rest])
    elif UNKNOWN in name:
        command.report(Event.UNKNOWN_NAME)
    elif [word.text for word in rest] in (["--help"], ["-h"], ["--version"]):
        return
    elif name.split(".")[0] in sys.stdlib_module_names | command.policy.names["removed_modules"]:
        command.report(Event.MODULE)


# Builtins of the shell


def _cd(command: "CommandCheck") -> Word:
    """Apply a change of directory; without a root, an ordinary directory elsewhere counts as the repository."""
    scope, paths = command.scope, command.paths
    target = command.arguments.operands[0].text if command.arguments.operands else "~"
    if command.name == "popd" or "-" in (word.text for word in command.call.argv[1:]):
        scope.cwd, scope.previous_cwd = scope.previous_cwd, scope.cwd
        return Word("")
    place, kind = paths.locate(target, scope.cwd), paths.classify(target, scope.cwd)
    is_ordinary = ("stand", kind) not in command.policy.paths and kind not in ("parent", "device", "startup")
    scope.previous_cwd = scope.cwd
    scope.cwd = UNKNOWN if UNKNOWN in place else place
    if paths.root is None and place.startswith(("/", "~", "../")) and is_ordinary and UNKNOWN not in place:
        scope.cwd = "."
    return Word("")


def _set(command: "CommandCheck") -> Word | None:
    if "--" in command.arguments.flags:
        command.scope.positional = list(command.arguments.operands)
    return None


def _read(command: "CommandCheck") -> Word:
    """Assign the lines of standard input to the variables of `read`."""
    stdin = command.call.stdin or UNKNOWN_WORD
    separators = (command.call.assigned.get("IFS") or command.scope.value("IFS")).text
    text = UNKNOWN if UNKNOWN in separators else stdin.text.translate(dict.fromkeys(map(ord, separators.strip()), " "))
    lines = [line for line in text.split("\n") if line] or [UNKNOWN]
    array = command.arguments.value("-a")
    names = command.arguments.operands or ([] if array else [Word("REPLY")])
    for place, name in enumerate(names):
        parts = [line.split(maxsplit=len(names) - 1) for line in lines]
        command.scope.assign_any(
            name.text, [Word(part[place], stdin.taint) for part in parts if part[place:]] or [Word("", stdin.taint)]
        )
    if array is not None:
        command.scope.assign_any(array.text, [Word(line, stdin.taint) for line in lines])
    return Word("")


def _trap(command: "CommandCheck") -> Word:
    for word in command.arguments.operands[:1]:
        if "$" in word.text and word.is_known and not word.taint:
            # Its variables are expanded at the end of the script.
            command.scope.deferred_commands.append(word.text)
        elif word.text not in ("", "-"):
            command.run_text("shell", word)
    return Word("")


def _alias(command: "CommandCheck") -> Word:
    for word in command.arguments.operands:
        name, equals, value = word.text.partition("=")
        if equals and value.strip():
            command.scope.aliases[name] = value
            command.run_text("shell", Word(value, word.taint))
    return Word("")


def _source(command: "CommandCheck") -> None:
    for script in command.arguments.operands[:1]:
        if script.text in _STDIN:
            command.run_text("shell", command.call.stdin or UNKNOWN_WORD)
        elif script.taint or not command.policy.patterns("sourceable").search(script.text):
            _check_script(command, "shell", script)


_BUILTINS = {"cd": _cd, "set": _set, "read": _read, "trap": _trap, "alias": _alias, "source": _source}
