"""Programs that start other programs: the inner command is judged like any other."""

import re
from typing import TypeVar

from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.programs.variables import check_variable
from decklog.guard.policy.shell.found_files import found_by
from decklog.guard.policy.shell.options import sort_arguments
from decklog.guard.policy.shell.simple_command import Call
from decklog.guard.policy.shell.words import UNKNOWN, UNKNOWN_WORD, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_MOST_ITEMS = 20
Item = TypeVar("Item")
_FIND_ACTIONS = {"-exec", "-execdir", "-ok", "-okdir"}


def check_argv(judge: Judge, use: Use) -> None:
    """Judge the command behind a wrapper such as nohup or timeout."""
    if use.name == "command" and use.arguments.has(("-v", "-V")):
        return
    inner = use.arguments.operands[use.program.skip :]
    if len(inner) > 1 and inner[0].text in ("-c", "--command"):
        use.printed = judge.run_text("shell", inner[1], use.scope, use.call)
    elif inner:
        use.printed = judge.review(use.call.inner(inner), use.scope)


def check_shell(judge: Judge, use: Use) -> None:
    """Judge the command line that a program such as eval or watch is given in its operands."""
    operands = use.arguments.operands[use.program.skip :]
    if not operands:
        return
    joined = Word(" ".join(word.text for word in operands), use.taint)
    judge.run_text("shell", joined, use.scope, use.call)
    for word in operands if len(operands) > 1 and use.name != "eval" else ():
        if " " in word.text:
            judge.run_text("shell", word, use.scope, use.call)


def check_environment(judge: Judge, use: Use) -> None:
    """Judge env: the variables it sets, and the command behind them."""
    operands = list(use.arguments.operands)
    if operands and operands[0].text == "-":
        operands.pop(0)
    while operands and (found := _ASSIGNMENT.fullmatch(operands[0].text)):
        check_variable(judge, found[1], Word(found[2], operands[0].taint), use.call, use.scope)
        operands.pop(0)
    if operands and use.name == "env":
        place = use.arguments.value("-C", "--chdir")
        scope = use.scope.inner()
        scope.cwd = judge.paths.locate(place.text, scope.cwd) if place else scope.cwd
        use.printed = judge.review(use.call.inner(operands), scope)


def check_xargs(judge: Judge, use: Use) -> None:
    """Judge the command that xargs or parallel builds from its standard input."""
    operands = use.arguments.operands
    texts = [word.text for word in operands]
    operands = operands[: texts.index(":::")] if ":::" in texts else operands
    if not operands:
        for item in _behind_colons(use):
            judge.run_text("shell", item, use.scope, use.call)
        return
    marker = use.arguments.value("-I", "-i", "--replace") or (Word("{}") if use.name == "parallel" else None)
    program = operands[0].text.rsplit("/", 1)[-1]
    if use.stdin_taint & {"network", "decoded"} and program in judge.policy.names["shells"]:
        judge.report("network-to-shell", use.call.text)
    for items in _batches(use, by_line=marker is not None):
        argv = _filled(operands, items, marker.text if marker else None)
        if use.name == "parallel":
            judge.run_text("shell", Word(" ".join(word.text for word in argv), use.stdin_taint), use.scope, use.call)
        judge.review(use.call.inner(argv, stdin=None), use.scope)


def _batches(use: Use, by_line: bool) -> list[list[Word]]:
    """List what standard input will add to each run: a line each, or all words to one run."""
    stdin = use.call.stdin or Word(UNKNOWN)
    given = [Word(item.text.removeprefix(":::")) for item in _behind_colons(use)]
    if given:
        return [[item] for item in given]
    if by_line or use.arguments.has(("-d", "--delimiter", "-0", "--null", "-n", "-L")):
        lines = _first([line for line in stdin.text.split("\n") if line.strip()], UNKNOWN)
        return [[Word(line, stdin.taint)] for line in lines] or [[Word(UNKNOWN, stdin.taint)]]
    words = [Word(item, stdin.taint) for item in stdin.text.split()]
    return [words or [Word(UNKNOWN, stdin.taint)]]


def _behind_colons(use: Use) -> list[Word]:
    """Give the arguments that parallel is given behind `:::`."""
    texts = [word.text for word in use.arguments.operands]
    return _first(use.arguments.operands[texts.index(":::") + 1 :], UNKNOWN_WORD) if ":::" in texts else []


def _first(items: list[Item], unknown: Item) -> list[Item]:
    """Give the first of many items, and an unknown one for the rest."""
    return items if len(items) <= _MOST_ITEMS else [*items[:_MOST_ITEMS], unknown]


def _filled(operands: list[Word], items: list[Word], marker: str | None) -> list[Word]:
    """Put an item where the marker stands, or all of them at the end."""
    if marker and any(marker in word.text for word in operands):
        item = items[0]
        return [Word(word.text.replace(marker, item.text), word.taint | item.taint) for word in operands]
    return [*operands, *items]


def check_find(judge: Judge, use: Use) -> None:
    """Judge find: what it deletes and what it runs, on the directories it starts from."""
    words = use.call.argv[1:]
    starts, found = found_by(words, judge.policy.patterns["filters"])
    for start in starts:
        judge.path("list", start, use.scope, use.call.text)
    if any(word.text == "-delete" for word in words):
        for place in found:
            judge.path("delete", place, use.scope, use.call.text)
    if any(word.text in _FIND_ACTIONS for word in words):
        _check_whole(judge, use, starts)
    _check_actions(judge, use, words, found)


def _check_whole(judge: Judge, use: Use, starts: list[Word]) -> None:
    """Ask about a program that is run on whatever lies in a home or on the machine."""
    for start in starts:
        if judge.paths.classify(start.text, use.scope.cwd) in ("root", "home"):
            judge.path("read", start, use.scope, use.call.text)


def _check_actions(judge: Judge, use: Use, words: list[Word], found: list[Word]) -> None:
    """Judge every command that find is told to run on what it finds."""
    place = 0
    while place < len(words):
        place += 1
        if words[place - 1].text not in _FIND_ACTIONS:
            continue
        argv: list[Word] = []
        while place < len(words) and words[place].text not in (";", "+"):
            argv.append(words[place])
            place += 1
        for item in found if argv else ():
            filled = [Word(word.text.replace("{}", item.text), word.taint) for word in argv]
            judge.review(use.call.inner(filled, stdin=None), use.scope)


def check_fd(judge: Judge, use: Use) -> None:
    """Judge the command that fd runs on what it finds."""
    texts = [word.text for word in use.call.argv]
    for flag in ("-x", "--exec", "-X", "--exec-batch"):
        if flag in texts:
            place = texts.index(flag)
            argv = use.call.argv[place + 1 :]
            plain = [text for text in texts[1:place] if not text.startswith("-")]
            starts = [text for text in plain[1:] if text != "."] or ["."]
            _check_whole(judge, use, [Word(start) for start in starts])
            for start in starts:
                found = f"{start.rstrip('/')}/{UNKNOWN}"
                marked = any("{" in word.text for word in argv)
                inner = [Word(re.sub(r"\{[/.]*\}", found, word.text)) for word in argv]
                judge.review(use.call.inner(inner if marked else [*inner, Word(found)], stdin=None), use.scope)


def check_trap(judge: Judge, use: Use) -> None:
    """Judge the command that a trap runs."""
    for word in use.arguments.operands[:1]:
        if "$" in word.text and UNKNOWN not in word.text and not word.taint:
            # Its variables have the values that they have when the script ends.
            use.scope.later.append(word.text)
        elif word.text not in ("", "-"):
            judge.run_text("shell", word, use.scope, use.call)


def check_alias(judge: Judge, use: Use) -> None:
    """Judge an alias as if it were used, and remember it."""
    for word in use.arguments.operands:
        name, equals, value = word.text.partition("=")
        if equals and value.strip():
            use.scope.aliases[name] = value
            judge.run_text("shell", Word(value, word.taint), use.scope, use.call)


# Options of npx and its like that bring a package along.
_FETCHES = ("-p", "--package", "--from", "--with", "-y", "--yes")


def check_package_runner(judge: Judge, use: Use) -> None:
    """Judge npx and its like: tools of the repository run, others are asked about."""
    # What follows the tool's name is the tool's own.
    own = sort_arguments(use.call.argv[1:], use.program.options, stop=True)
    operands = own.operands
    if own.has(_FETCHES):
        judge.report("package-runner", use.call.text)
    if own.has(("-c", "--call")):
        judge.run_text("shell", own.value("-c", "--call") or Word(UNKNOWN), use.scope, use.call)
        return
    if operands and use.name == "pipx":
        operands = operands[1:] if operands[0].text == "run" else operands
    tool = operands[0].text if operands else ""
    if tool in judge.policy.names["local_tools"]:
        if judge.policy.program(tool) is not None:
            judge.review(use.call.inner(operands), use.scope)
        elif any(judge.policy.patterns["publishing"].search(word.text) for word in operands[1:3]):
            judge.report("deploy-target", use.call.text)
    elif not own.has(("--no-install", "--no")):
        judge.report("package-runner", use.call.text)


# An image without a publisher, with its tag or digest.
_IMAGE = re.compile(r"(?:docker\.io/)?(?:library/)?([a-z0-9][a-z0-9-]*)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?")
_STEP = re.compile(r"(?mi)^\s*RUN\s+(\S.*)$")
_REGISTRY = re.compile(r"[\w-]+[.:][^/]*/|localhost/")


def check_container(judge: Judge, use: Use) -> None:
    """Judge what a new container runs: the image by where it comes from, what it is given of the repository, and the command."""
    operands = use.arguments.operands
    mounted = [word for option, word in use.arguments.values if use.program.options.get(option) == "mounted"]
    for word in mounted:
        judge.path("subject" if word.text.endswith(":ro") else "write", Word(word.text.split(":")[0]), use.scope, use.call.text)
    image = operands[0].text if operands else UNKNOWN
    publisher = image.partition("/")[0] if "/" in image else "library"
    if UNKNOWN in image or _REGISTRY.match(image) or publisher not in judge.policy.names["image_publishers"]:
        judge.report("package-runner", use.call.text)
    # What begins like an option is one of the program that the image starts.
    if operands[1:] and operands[1].text not in ("--version", "--help", "-V", "-h"):
        use.printed = judge.review(use.call.inner(operands[1:]), use.scope)


def check_image(judge: Judge, use: Use) -> None:
    """Ask about an image that is fetched or looked up, unless it is one of those that the registry looks after itself."""
    names = [_IMAGE.fullmatch(word.text) for word in use.arguments.operands]
    if not names or not all(found and found[1] in judge.policy.names["official_images"] for found in names):
        judge.report("container-image", use.call.text)


def check_build(judge: Judge, use: Use) -> None:
    """Ask about an image that is built from standard input which nobody can read here, or which runs what would be refused."""
    if "build" not in use.sub.split() or all(word.text != "-" for word in use.call.argv):
        return
    stdin = use.call.stdin or UNKNOWN_WORD
    steps = _STEP.findall(stdin.text.replace("\\\n", " "))
    if not stdin.is_known or any(judge.refusal("shell", Word(step), use.scope, use.call) for step in steps[:_MOST_ITEMS]):
        judge.report("piped-to-interpreter", use.call.text)


# What runs a file that is named without its interpreter.
_RUN_BY = {"py": "python", "rb": "ruby"}


def check_runner(judge: Judge, use: Use) -> None:
    """Judge the command behind `uv run`, `poetry run` or `bundle exec`: a program, a script, or a module of Python."""
    texts = [word.text for word in use.call.argv]
    modules = [option for option, _ in use.arguments.values if use.program.options.get(option) == "module"]
    inner = use.arguments.operands[use.program.skip :]
    if modules:
        inner = [Word("python"), Word("-m"), *use.call.argv[texts.index(modules[0]) + 1 :]]
    elif inner and "://" in inner[0].text:
        judge.report("package-runner", use.call.text)
    elif inner and inner[0].text.rpartition(".")[2] in _RUN_BY:
        inner = [Word(_RUN_BY[inner[0].text.rpartition(".")[2]]), *inner]
    if inner:
        use.printed = judge.review(use.call.inner(inner), use.scope)


def check_packages(judge: Judge, use: Use) -> None:
    """Judge the command behind `mise exec --` and its like."""
    texts = [word.text for word in use.call.argv]
    if "--" in texts:
        inner = use.call.argv[texts.index("--") + 1 :]
        if inner:
            judge.review(Call(inner, use.call.text, stdin=use.call.stdin), use.scope)


def check_script(judge: Judge, use: Use) -> None:
    """Ask about script without a command: it starts an interactive shell."""
    if use.arguments.value("-c", "--command") is None:
        judge.report("piped-to-interpreter", use.call.text)
