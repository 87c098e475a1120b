"""Programs that start other programs or run code: the inner command or code is judged like any other."""

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


def start_inner(use: "CommandCheck") -> Word | None:
    """Judge what a program starts; return its output if that is the program's own."""
    program = use.program
    if program.get("builtin"):
        return _BUILTINS[program["builtin"]](use)
    if program.get("files"):
        run_files(use)
    printed = _after(use) if program.get("after") else None
    if program.get("language"):
        _interpret(use)
        return printed
    if printed is not None or use.arguments.has(program.get("runs_nothing", ())):
        return printed
    if program.get("tools"):
        return _package_tool(use)
    operands = list(use.arguments.operands)
    if program.get("assigns"):
        _assign(use, operands)
    operands = operands[program.get("skip", 0) :]
    if modules := [word for option, word in use.arguments.values if program.get("options", {}).get(option) == "module"]:
        operands = [Word("python"), Word("-m"), modules[0], *operands]
    if not program.get("runs") or not operands:
        return None
    if program.get("appends"):
        return _append(use, operands)
    if program.get("runs") == "argv":
        return _run_argv(use, operands)
    use.run_text("shell", Word(" ".join(word.text for word in operands), use.taint_except([])))
    for word in operands if len(operands) > 1 and not program.get("joined") else ():
        if " " in word.text:
            use.run_text("shell", word)
    return None


def _run_argv(use: "CommandCheck", inner: list[Word]) -> Word:
    """Judge the command behind a wrapper such as nohup, `uv run` or `docker exec`."""
    if inner[0].text in ("-c", "--command") and inner[1:]:
        return use.run_text("shell", inner[1])
    if inner[0].text in ("--version", "--help", "-V", "-h"):
        return UNKNOWN_WORD
    by_ending = use.program.get("run_by", {}).get(inner[0].text.rpartition(".")[2])
    if by_ending:
        inner = [Word(by_ending), *inner]
    place = use.arguments.value("-C", "--chdir") if use.program.get("assigns") else None
    scope = use.scope.inner() if place is not None else use.scope
    if place is not None:
        scope.cwd = use.paths.locate(place.text, scope.cwd)
    return use.at(use.call.inner(inner), scope).review()


def _assign(use: "CommandCheck", operands: list[Word]) -> None:
    """Judge the variables that env sets, and leave the command behind them."""
    if operands and operands[0].text == "-":
        operands.pop(0)
    while operands and (found := _ASSIGNMENT.fullmatch(operands[0].text)):
        use.check_variable(found[1], Word(found[2], operands.pop(0).taint))


def _after(use: "CommandCheck") -> Word | None:
    """Judge the commands behind markers such as find's `-exec` or cargo's `--`."""
    words, entry = use.call.argv[1:], use.program
    markers, ends = entry["after"], entry.get("until", ())
    found = found_by(use) if entry.get("finds") else [UNKNOWN_WORD]
    if any(word.text in use.program.get("deletes", ()) for word in words):
        for word in found:
            use.check_path("delete", word)
    printed, place = None, 0
    while place < len(words):
        place += 1
        if words[place - 1].text not in markers:
            continue
        argv: list[Word] = []
        for word in use.operands if entry.get("finds") else ():
            use.check_path("searched", word)
        while place < len(words) and words[place].text not in ends:
            argv.append(words[place])
            place += 1
        while argv and argv[0].text.startswith("--"):
            argv.pop(0)
        if argv and entry.get("aliases"):
            aliases = dict(pair.split("=") for pair in use.policy.names[entry["aliases"]])
            if argv[0].text not in aliases:
                use.report(Event.STARTS_PROGRAM)
            argv[0] = Word(aliases.get(argv[0].text, "true"))
        if len(argv) == 1 and " " in argv[0].text:
            printed = use.run_text("shell", argv[0])
            continue
        for item in found if argv else ():
            filled = [Word(re.sub(r"\{[/.]*\}", lambda _, item=item: item.text, word.text), word.taint) for word in argv]  # type: ignore[misc]
            if entry.get("finds") == "fd" and filled == argv:
                filled.append(item)
            printed = use.run(filled, keeps_stdin=not entry.get("finds"))
    return printed


def found_by(use: "CommandCheck") -> list[Word]:
    """Return what a search finds: paths like a searched name, something below the start, or the start itself."""
    if use.program.get("finds") == "fd":
        operands = [word.text for word in use.operands[1:] if word.text != "."]
        return [Word(f"{start.rstrip('/')}/{UNKNOWN}") for start in operands or ["."]]
    words = use.call.argv[1:]
    starts, place = [], 0
    while place < len(words) and (words[place].text in ("-H", "-L", "-P") or not words[place].text.startswith(("-", "(", "!"))):
        starts += [words[place]] if not words[place].text.startswith("-") else []
        place += 1
    starts = starts or [Word(".")]
    texts, endings = [word.text for word in words[place:]], []
    for at, text in enumerate(texts):
        if use.policy.patterns("filters").match(text) and not (at and texts[at - 1] in ("!", "-not")):
            value = texts[at + 1] if at + 1 < len(texts) else UNKNOWN
            endings.append(value.rsplit("/", 1)[-1] or UNKNOWN if text in _NAME_TESTS else UNKNOWN)
    return [Word(f"{start.text.rstrip('/')}/{ending}", start.taint) for start in starts for ending in endings] or starts


def _package_tool(use: "CommandCheck") -> Word | None:
    """Judge npx and its like: tools of the repository run, others are reported."""
    own = Arguments(use.call.argv[1:], use.program.get("options", ()), stop=True)
    operands = own.operands[1:] if [word.text for word in own.operands[:1]] == ["run"] else own.operands
    if own.has(use.program.get("fetches", ())):
        use.report(Event.PACKAGE)
    if own.has(("-c", "--call")):
        return use.run_text("shell", own.value("-c", "--call") or UNKNOWN_WORD)
    tool = operands[0].text if operands else ""
    if tool in use.policy.names[use.program["tools"]]:
        if use.policy.knows(tool):
            return use.run(operands)
        for word in operands[1:3]:
            use.check("tool-command", word)
    elif not own.has(("--no-install", "--no")):
        use.report(Event.PACKAGE)
    return None


def _append(use: "CommandCheck", operands: list[Word]) -> Word | None:
    """Judge the command that xargs or parallel builds from its standard input."""
    texts = [word.text for word in operands]
    place = texts.index(":::") if ":::" in texts else len(texts)
    given, operands = operands[place + 1 :], operands[:place]
    replace = [word.text for option, word in use.arguments.values if use.program.get("options", {}).get(option) == "replace"]
    marker = replace[0] if replace else use.program["appends"]
    stdin, is_shell = use.call.stdin or UNKNOWN_WORD, use.program.get("runs") == "shell"
    by_line = bool(replace) or is_shell or use.arguments.has(("-d", "--delimiter", "-0", "--null", "-n", "-L"))
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
        started = use.policy.programs.get(argv[0].text)
        if is_shell:
            use.run_text("shell", Word(" ".join(word.text for word in argv), use.stdin_taint))
        elif started is not None and use.stdin_taint & {"network", "decoded"}:
            use.at(use.call.inner([argv[0]])).use_program(argv[0].text, started)
        use.run(argv, keeps_stdin=False)
    return None


# Files of build tools: makefiles, and the scripts of package files


def recipes(text: str, wanted: set[str] | None = None) -> Iterator[str]:
    """Yield the command lines of a makefile, or of the targets that are wanted."""
    text = text.replace("\\\n", " ")
    assigned = [found.groups() for found in islice(_ASSIGNED.finditer(text), _MOST)]
    names = [name for name, _ in assigned]
    values = {**_SET_BY_MAKE, **{name: value.strip() for name, value in assigned if names.count(name) == 1}}
    for found in islice(_SHELL.finditer(text), _MOST):
        yield _as_shell(found[1] or found[2] or "", values)
    needed = _needed(text, wanted) if wanted is not None else None
    is_needed = True
    values |= dict.fromkeys("@<^?*+%", "x")
    for line in text.split("\n"):
        target = _TARGET.match(line)
        if target:
            values["@"] = next(iter(target[1].split()), "x")
            is_needed = needed is None or "%" in target[1] or not needed.isdisjoint(target[1].split())
        command = _RECIPE.match(line)
        if command and is_needed:
            yield _as_shell(command[1], values)


def _needed(text: str, wanted: set[str]) -> set[str]:
    """Return the targets that are made on the way to some; the first one where none is named."""
    needs = [(found[1].split(), found[2].split()) for found in _TARGET.finditer(text)]
    plain = [target for targets, _ in needs for target in targets if not target.startswith(".")]
    needed = set(wanted) or set(plain[:1])
    for _ in range(_DEEPEST):
        needed |= {need for targets, names in needs if not needed.isdisjoint(targets) for need in names}
    return needed


def _as_shell(text: str, values: dict[str, str]) -> str:
    """Expand the variables of a makefile's line."""
    for _ in range(_NESTED):
        text = _VARIABLE.sub(lambda found: values.get(found[0].strip("$(){}"), UNKNOWN), text)
    return text.replace("$$", "$")


def run_files(use: "CommandCheck") -> None:
    """Judge the files that a build tool runs and the script has written."""
    wanted = {word.text for word in use.arguments.operands if "=" not in word.text}
    file = use.arguments.value("-f", "--file", "--makefile", "--justfile")
    for name in [file.text] if file is not None else use.program.get("files", ()):
        written = use.scope.written(name)
        if written is None:
            continue
        commands = list(recipes(written.text, wanted))
        if name.endswith(".json"):
            names = wanted | (use.policy.names["install_scripts"] if wanted & use.policy.names["install_commands"] else set())
            try:
                scripts = json.loads(written.text)["scripts"].items()
            except (ValueError, KeyError, TypeError, AttributeError):
                scripts = ()
            commands = [text for key, text in scripts if {key, _AROUND.sub("", key)} & names and isinstance(text, str)]
        for command in commands:
            use.run_text("shell", Word(command, written.taint))


# Interpreters


def _interpret(use: "CommandCheck") -> None:
    """Judge what an interpreter runs: code, a module, a script, or its standard input."""
    program = use.program
    language = use.policy.languages.get(use.name) or program["language"]
    code, module = program.get("code", ()), program.get("module", ())
    words = [word for word in use.call.argv[1:] if word.text != "--"]
    given = Arguments(words, program.get("options", ()), free=code, last=module, stop=True)
    operands = list(dropwhile(lambda word: word.text.startswith("+"), given.operands))
    is_empty = any(redirect.target.text == "/dev/null" and not redirect.writes for redirect in use.call.redirects)
    if given.has(program.get("interactive", ())) and not is_empty:
        _check_stdin(use, language)
    if name := given.value(*module):
        _check_module(use, name.text, operands)
    elif codes := [word for option, word in given.values if option in code]:
        _check_code(use, language, codes, operands)
    elif use.arguments.has(program.get("runs_nothing", ())):
        return
    elif not operands or operands[0].text in _STDIN or (language == "shell" and "-s" in given.flags):
        _check_stdin(use, language)
    else:
        _check_script(use, language, operands[0])
        script = operands[0].text.rsplit("/", 1)[-1]
        if script in use.policy.names["script_programs"]:
            use.run([Word(script), *operands[1:]])


def _check_code(use: "CommandCheck", language: str, codes: list[Word], rest: list[Word]) -> None:
    """Judge the code among the arguments of an interpreter, and the files that it works on."""
    if language == "shell":
        code, *rest = [*codes[:1], *rest] if not codes[0].text.startswith(("-", "+")) or not rest else rest
        use.run_text("shell", Word(code.text if code.text.strip() == UNKNOWN else "", code.taint))
        use.run_script(code.text.replace(UNKNOWN, "${UNKNOWN}"), use.call.stdin, rest[1:])
        return
    edits = use.arguments.has(use.program.get("edits", ()))
    for code in codes:
        use.run_text(language, code)
        text = Word(code.text.replace("\\n", "\n").replace("\\t", "\t"))
        for word in rest:
            use.check_path("write" if edits else "read", word)
            if edits and any(use.is_refused(role, text) for role in use.policy.file_roles(word.text)):
                use.report(Event.REFUSED_LATER)


def _check_stdin(use: "CommandCheck", language: str) -> None:
    """Judge code that is read from standard input."""
    if use.call.stdin is None:
        use.report(Event.OPAQUE_CODE)
        return
    use.run_text(language, use.call.stdin)
    for redirect in use.call.redirects:
        if not redirect.writes:
            use.check_path("run", redirect.target)


def _check_script(use: "CommandCheck", language: str, script: Word) -> None:
    """Judge a script by its known content, else by its place."""
    if "://" in script.text:
        use.report(Event.NETWORK_CODE)
    written = use.scope.written(script.text)
    if written is not None:
        use.run_text(language, written)
    if script.content is not None or (script.taint and written is None):
        use.run_text(language, Word(script.content or UNKNOWN, script.taint))
    else:
        use.run_file(script)


def _check_module(use: "CommandCheck", module: str, rest: list[Word]) -> None:
    """Judge `python -m`: a program of this name, a listed module, or one of the standard library."""
    name = module.split(".")[0] if module.split(".")[0] in ("pip", "decklog") else module
    listed = f"python -m {module}"
    if program := use.policy.programs.get(listed):
        use.at(use.call.inner([Word(listed), *rest])).use_program(listed, program)
    elif name in use.policy.programs:
        use.run([Word(name), *rest])
    elif UNKNOWN in name:
        use.report(Event.UNKNOWN_NAME)
    elif [word.text for word in rest] in (["--help"], ["-h"], ["--version"]):
        return
    elif name.split(".")[0] in sys.stdlib_module_names | use.policy.names["removed_modules"]:
        use.report(Event.MODULE)


# Builtins of the shell


def _cd(use: "CommandCheck") -> Word:
    """Follow a change of directory; without a root, an ordinary directory elsewhere is taken for the repository."""
    scope, paths = use.scope, use.paths
    target = use.arguments.operands[0].text if use.arguments.operands else "~"
    if use.name == "popd" or "-" in (word.text for word in use.call.argv[1:]):
        scope.cwd, scope.before = scope.before, scope.cwd
        return Word("")
    place, kind = paths.locate(target, scope.cwd), paths.classify(target, scope.cwd)
    is_ordinary = ("stand", kind) not in use.policy.paths and kind not in ("parent", "device", "startup")
    scope.before = scope.cwd
    scope.cwd = UNKNOWN if UNKNOWN in place else place
    if paths.root is None and place.startswith(("/", "~", "../")) and is_ordinary and UNKNOWN not in place:
        scope.cwd = "."
    return Word("")


def _set(use: "CommandCheck") -> Word | None:
    if "--" in use.arguments.flags:
        use.scope.positional = list(use.arguments.operands)
    return None


def _read(use: "CommandCheck") -> Word:
    """Return the variables of `read` what is on standard input."""
    stdin = use.call.stdin or UNKNOWN_WORD
    separators = (use.call.assigned.get("IFS") or use.scope.value("IFS")).text
    text = UNKNOWN if UNKNOWN in separators else stdin.text.translate(dict.fromkeys(map(ord, separators.strip()), " "))
    lines = [line for line in text.split("\n") if line] or [UNKNOWN]
    array = use.arguments.value("-a")
    names = use.arguments.operands or ([] if array else [Word("REPLY")])
    for place, name in enumerate(names):
        parts = [line.split(maxsplit=len(names) - 1) for line in lines]
        use.scope.offer(name.text, [Word(part[place], stdin.taint) for part in parts if part[place:]] or [Word("", stdin.taint)])
    if array is not None:
        use.scope.offer(array.text, [Word(line, stdin.taint) for line in lines])
    return Word("")


def _trap(use: "CommandCheck") -> Word:
    for word in use.arguments.operands[:1]:
        if "$" in word.text and word.is_known and not word.taint:
            # Its variables have the values at the end of the script.
            use.scope.later.append(word.text)
        elif word.text not in ("", "-"):
            use.run_text("shell", word)
    return Word("")


def _alias(use: "CommandCheck") -> Word:
    for word in use.arguments.operands:
        name, equals, value = word.text.partition("=")
        if equals and value.strip():
            use.scope.aliases[name] = value
            use.run_text("shell", Word(value, word.taint))
    return Word("")


def _source(use: "CommandCheck") -> None:
    for script in use.arguments.operands[:1]:
        if script.text in _STDIN:
            use.run_text("shell", use.call.stdin or UNKNOWN_WORD)
        elif script.taint or not use.policy.patterns("sourceable").search(script.text):
            _check_script(use, "shell", script)


_BUILTINS = {"cd": _cd, "set": _set, "read": _read, "trap": _trap, "alias": _alias, "source": _source}
