"""Programs that start other programs or run code: the inner command or code is judged like any other."""

import json
import posixpath
import re
import sys

from decklog.guard.policy.script import recipes
from decklog.guard.policy.use import Judge, Use
from decklog.guard.policy.verdict import Event, Publication
from decklog.guard.policy.words import UNKNOWN, UNKNOWN_WORD, Word, sort_arguments

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_STDIN = {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
_NAME_TESTS = ("-name", "-iname", "-path", "-ipath", "-wholename")
_AROUND = re.compile(r"^(?:pre|post)")
_MOST_ITEMS = 20
_PAIR = 2


def start_inner(judge: Judge, use: Use) -> Word | None:
    """Judge what a program starts; return its output if that is the program's own."""
    program = use.program
    if program.get("builtin"):
        return _BUILTINS[program.get("builtin")](judge, use)
    if program.get("files"):
        _run_files(judge, use)
    printed = _after(judge, use) if program.get("after") else None
    if program.get("language"):
        _Interpreter(judge, use).check()
    if (
        printed is not None
        or program.get("language")
        or (program.get("runs_nothing") and use.arguments.has(program.words("runs_nothing")))
    ):
        return printed
    if program.get("tools"):
        return _package_tool(judge, use)
    operands = list(use.arguments.operands)
    if program.get("assigns"):
        _assign(judge, use, operands)
    if not program.get("runs") or len(operands) <= (program.get("skip") or 0):
        return None
    operands = operands[(program.get("skip") or 0) :]
    if program.get("appends"):
        return _append(judge, use, operands)
    if program.get("runs") == "argv":
        return _run_argv(judge, use, operands)
    judge.run_text("shell", Word(" ".join(word.text for word in operands), use.taint_except([])), use.scope, use.call)
    for word in operands if len(operands) > 1 and not program.get("joined") else ():
        if " " in word.text:
            judge.run_text("shell", word, use.scope, use.call)
    return None


def _run_argv(judge: Judge, use: Use, inner: list[Word]) -> Word:
    """Judge the command behind a wrapper such as nohup, `uv run` or `docker exec`."""
    texts = [word.text for word in use.call.argv]
    modules = [option for option, _ in use.arguments.values if use.program.options.get(option) == "module"]
    if modules:
        inner = [Word("python"), Word("-m"), *use.call.argv[texts.index(modules[0]) + 1 :]]
    elif inner[0].text in ("-c", "--command") and inner[1:]:
        return judge.run_text("shell", inner[1], use.scope, use.call)
    elif inner[0].text in ("--version", "--help", "-V", "-h"):
        return UNKNOWN_WORD
    by_ending = use.program.data.get("run_by", {}).get(inner[0].text.rpartition(".")[2])
    if by_ending:
        inner = [Word(by_ending), *inner]
    place = use.arguments.value("-C", "--chdir") if use.program.get("assigns") else None
    scope = use.scope.inner() if place is not None else use.scope
    if place is not None:
        scope.cwd = judge.paths.locate(place.text, scope.cwd)
    return judge.review(use.call.inner(inner), scope)


def _assign(judge: Judge, use: Use, operands: list[Word]) -> None:
    """Judge the variables that env sets, and leave the command behind them."""
    if operands and operands[0].text == "-":
        operands.pop(0)
    while operands and (found := _ASSIGNMENT.fullmatch(operands[0].text)):
        judge.variable(found[1], Word(found[2], operands.pop(0).taint), use.call, use.scope)


def _after(judge: Judge, use: Use) -> Word | None:
    """Judge the commands behind markers such as find's `-exec` or cargo's `--`."""
    words, entry = use.call.argv[1:], use.program.data
    markers, ends = use.program.words("after"), use.program.words("until")
    found = found_by(judge, use) if entry.get("finds") else [UNKNOWN_WORD]
    if any(word.text in use.program.words("deletes") for word in words):
        for word in found:
            judge.path("delete", word, use.scope, use.call.text)
    printed, place = None, 0
    while place < len(words):
        place += 1
        if words[place - 1].text not in markers:
            continue
        argv: list[Word] = []
        for word in use.operands if entry.get("finds") else ():
            judge.path("searched", word, use.scope, use.call.text)
        while place < len(words) and words[place].text not in ends:
            argv.append(words[place])
            place += 1
        while argv and argv[0].text.startswith("--"):
            argv.pop(0)
        if argv and entry.get("aliases"):
            aliases = dict(pair.split("=") for pair in judge.policy.names(entry["aliases"]))
            if argv[0].text not in aliases:
                judge.report(Event.STARTS_PROGRAM, use.call.text)
            argv[0] = Word(aliases.get(argv[0].text, "true"))
        if len(argv) == 1 and " " in argv[0].text:
            printed = judge.run_text("shell", argv[0], use.scope, use.call)
            continue
        for item in found if argv else ():
            filled = [Word(re.sub(r"\{[/.]*\}", lambda _, item=item: item.text, word.text), word.taint) for word in argv]  # type: ignore[misc]
            if entry.get("finds") == "fd" and filled == argv:
                filled.append(item)
            printed = judge.review(use.call.inner(filled, keeps_stdin=not entry.get("finds")), use.scope)
    return printed


def found_by(judge: Judge, use: Use) -> list[Word]:
    """Return what a search finds: paths like a searched name, something below the start, or the start itself."""
    if use.program.get("finds") == "fd":
        operands = [word.text for word in use.operands[1:] if word.text != "."]
        return [Word(f"{start.rstrip('/')}/{UNKNOWN}") for start in operands or ["."]]
    words = use.call.argv[1:]
    starts, place = [], 0
    while place < len(words) and not (
        words[place].text.startswith(("-", "(", "!")) and words[place].text not in ("-H", "-L", "-P")
    ):
        starts += [words[place]] if not words[place].text.startswith("-") else []
        place += 1
    starts = starts or [Word(".")]
    texts, endings = [word.text for word in words[place:]], []
    for at, text in enumerate(texts):
        if judge.policy.patterns("filters").match(text) and not (at and texts[at - 1] in ("!", "-not")):
            value = texts[at + 1] if at + 1 < len(texts) else UNKNOWN
            endings.append(value.rsplit("/", 1)[-1] or UNKNOWN if text in _NAME_TESTS else UNKNOWN)
    return [Word(f"{start.text.rstrip('/')}/{ending}", start.taint) for start in starts for ending in endings] or starts


def _package_tool(judge: Judge, use: Use) -> Word | None:
    """Judge npx and its like: tools of the repository run, others are reported."""
    own = sort_arguments(use.call.argv[1:], use.program.options, stop=True)
    operands = own.operands[1:] if [word.text for word in own.operands[:1]] == ["run"] else own.operands
    if own.has(use.program.words("fetches")):
        judge.report(Event.PACKAGE, use.call.text)
    if own.has(("-c", "--call")):
        return judge.run_text("shell", own.value("-c", "--call") or UNKNOWN_WORD, use.scope, use.call)
    tool = operands[0].text if operands else ""
    if tool in judge.policy.names(use.program.get("tools")):
        if judge.knows(tool):
            return judge.review(use.call.inner(operands), use.scope)
        for word in operands[1:3]:
            judge.role_of("tool-command", word, use)
    elif not own.has(("--no-install", "--no")):
        judge.report(Event.PACKAGE, use.call.text)
    return None


def _append(judge: Judge, use: Use, operands: list[Word]) -> Word | None:
    """Judge the command that xargs or parallel builds from its standard input."""
    texts = [word.text for word in operands]
    place = texts.index(":::") if ":::" in texts else len(texts)
    given, operands = operands[place + 1 :], operands[:place]
    replace = [word.text for option, word in use.arguments.values if use.program.options.get(option) == "replace"]
    marker = replace[0] if replace else use.program.get("appends")
    stdin = use.call.stdin or UNKNOWN_WORD
    by_line = (
        bool(replace)
        or use.arguments.has(("-d", "--delimiter", "-0", "--null", "-n", "-L"))
        or use.program.get("runs") == "shell"
    )
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
        if use.program.get("runs") == "shell":
            judge.run_text("shell", Word(" ".join(word.text for word in argv), use.stdin_taint), use.scope, use.call)
        elif judge.policy.program(argv[0].text) and use.stdin_taint & {"network", "decoded"}:
            judge.use(argv[0].text, judge.policy.program(argv[0].text), use.call.inner([argv[0]]), use.scope)  # type: ignore[arg-type]
        judge.review(use.call.inner(argv, keeps_stdin=False), use.scope)
    return None


def _run_files(judge: Judge, use: Use) -> None:
    """Judge the files that a build tool runs and the script has written."""
    wanted = {word.text for word in use.arguments.operands if "=" not in word.text}
    file = use.arguments.value("-f", "--file", "--makefile", "--justfile")
    for name in [file.text] if file is not None else use.program.words("files"):
        written = use.scope.written(name)
        if written is None:
            continue
        commands = list(recipes(written.text, wanted))
        if name.endswith(".json"):
            names = wanted | (judge.policy.names("install_scripts") if wanted & judge.policy.names("install_commands") else set())
            scripts = _scripts(written.text).items()
            commands = [command for script, command in scripts if script in names or _AROUND.sub("", script) in names]
        for command in commands:
            judge.run_text("shell", Word(command, written.taint), use.scope, use.call)


def _scripts(text: str) -> dict[str, str]:
    """Return the scripts of a package file."""
    try:
        scripts = json.loads(text)["scripts"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {name: command for name, command in scripts.items() if isinstance(command, str)} if isinstance(scripts, dict) else {}


# Interpreters


class _Interpreter:
    """An interpreter's start: code, a module, a script, or only its standard input."""

    def __init__(self, judge: Judge, use: Use) -> None:
        self.judge, self.use, self.program = judge, use, use.program
        self.language = judge.policy.languages.get(use.name, use.program.get("language"))
        self.code: list[Word] = []
        self.module: str | None = None
        self.script: Word | None = None
        self.reads_stdin = False
        self.flags: set[str] = set()
        self.rest = self._read(use.call.argv[1:])

    def _read(self, words: list[Word]) -> list[Word]:
        place = 0
        while place < len(words) and self.module is None:
            text = words[place].text
            if text in _STDIN or (text == "-s" and self.language == "shell"):
                self.reads_stdin = True
            elif text.startswith(("-", "+")) and text != "--":
                place += self._flag(words[place], words[place + 1] if place + 1 < len(words) else Word(""))
            elif text != "--":
                if not self.code:
                    self.script, place = words[place], place + 1
                break
            place += 1
        return words[place:]

    def _flag(self, word: Word, following: Word) -> int:
        """Read one flag and return the number of further words it used."""
        code, module = self.program.words("code"), self.program.words("module")
        name, equals, value = word.text.partition("=")
        self.flags.add(name)
        if word.text.startswith("--") or word.text in code:
            if name in code:
                self.code.append(Word(value, word.taint) if equals else following)
            return 0 if equals or (name not in code and name not in self.program.options) else 1
        for index, char in enumerate(word.text[1:], start=1):
            flag, rest = "-" + char, word.text[index + 1 :]
            self.flags.add(flag)
            if flag in code:
                self.code.append(Word(rest, word.taint) if rest else following)
                return 0 if rest else 1
            if flag in module:
                self.module = rest or following.text
                return 0 if rest else 1
            if flag in self.program.options:
                return 0 if rest or following.text.startswith("-") else 1
        return 0

    def check(self) -> None:
        """Judge what the interpreter runs."""
        is_empty = any(redirect.target.text == "/dev/null" and not redirect.writes for redirect in self.use.call.redirects)
        if self.flags & self.program.words("interactive") and not is_empty:
            self._check_stdin()
        if self.module is not None:
            self._check_module(self.module)
        elif self.code:
            self._check_code()
        elif not self.use.arguments.has(self.program.words("runs_nothing")):
            if self.script is not None and not self.reads_stdin:
                self.check_file(self.script)
                name = self.script.text.rsplit("/", 1)[-1]
                if name in self.judge.policy.names("script_programs"):
                    self.judge.review(self.use.call.inner([Word(name), *self.rest]), self.use.scope)
            else:
                self._check_stdin()

    def _check_code(self) -> None:
        call, scope = self.use.call, self.use.scope
        if self.language == "shell":
            code = self.code[0]
            if code.text.startswith(("-", "+")) and self.rest:
                code, self.rest = self.rest[0], self.rest[1:]
            self.judge.run_text("shell", Word(code.text if code.text.strip() == UNKNOWN else "", code.taint), scope, call)
            self.judge.run_script(code.text.replace(UNKNOWN, "${UNKNOWN}"), scope, call.stdin, self.rest[1:])
            return
        edits = self.use.arguments.has(self.program.words("edits"))
        for code in self.code:
            self.judge.run_text(self.language, code, scope, call)
            for word in self.rest:
                self.judge.path("write" if edits else "read", word, scope, call.text)
                for role in self.judge.file_roles(word.text) if edits else ():
                    if self.judge.is_refused(role, Word(code.text.replace("\\n", "\n").replace("\\t", "\t")), scope, call):
                        self.judge.report(Event.REFUSED_LATER, call.text)

    def _check_stdin(self) -> None:
        call = self.use.call
        if call.stdin is None:
            self.judge.report(Event.OPAQUE_CODE, call.text)
            return
        self.judge.run_text(self.language, call.stdin, self.use.scope, call)
        for redirect in call.redirects:
            if not redirect.writes:
                self.judge.path("run", redirect.target, self.use.scope, call.text)

    def check_file(self, script: Word) -> None:
        """Judge a script by its known content, else by its place."""
        scope, call = self.use.scope, self.use.call
        if "://" in script.text:
            self.judge.report(Event.NETWORK_CODE, call.text)
        written = scope.written(script.text)
        if written is not None:
            self.judge.run_text(self.language, written, scope, call)
        if script.content is not None or (script.taint and written is None):
            self.judge.run_text(self.language, Word(script.content or UNKNOWN, script.taint), scope, call)
        else:
            self.judge.run_file(script, scope, call)

    def _check_module(self, module: str) -> None:
        """Judge `python -m`: a program of this name, a listed module, or one of the standard library."""
        name = module.split(".")[0] if module.split(".")[0] in ("pip", "decklog") else module
        judge, call, listed = self.judge, self.use.call, f"python -m {module}"
        if judge.policy.program(listed):
            judge.use(listed, judge.policy.program(listed), call.inner([Word(listed), *self.rest]), self.use.scope)  # type: ignore[arg-type]
        elif judge.policy.program(name):
            judge.review(call.inner([Word(name), *self.rest]), self.use.scope)
        elif UNKNOWN in name:
            judge.report(Event.UNKNOWN_NAME, call.text)
        elif [word.text for word in self.rest] in (["--help"], ["-h"], ["--version"]):
            return
        elif name.split(".")[0] in sys.stdlib_module_names | judge.policy.names("removed_modules"):
            judge.report(Event.MODULE, call.text)


# Builtins of the shell


def _cd(judge: Judge, use: Use) -> Word:
    """Follow a change of directory; without a root, an ordinary directory elsewhere is taken for the repository."""
    target = use.arguments.operands[0].text if use.arguments.operands else "~"
    scope = use.scope
    if use.name == "popd" or "-" in (word.text for word in use.call.argv[1:]):
        scope.cwd, scope.before = scope.before, scope.cwd
        return Word("")
    place, kind = judge.paths.locate(target, scope.cwd), judge.paths.classify(target, scope.cwd)
    is_ordinary = ("stand", kind) not in judge.policy.paths and kind not in ("parent", "device", "startup")
    scope.before = scope.cwd
    scope.cwd = UNKNOWN if UNKNOWN in place else place
    if judge.paths.root is None and place.startswith(("/", "~", "../")) and is_ordinary and UNKNOWN not in place:
        scope.cwd = "."
    return Word("")


def _set(_judge: Judge, use: Use) -> Word | None:
    if "--" in use.arguments.flags:
        use.scope.positional = list(use.arguments.operands)
    return None


def _read(_judge: Judge, use: Use) -> Word:
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


def _trap(judge: Judge, use: Use) -> Word:
    for word in use.arguments.operands[:1]:
        if "$" in word.text and word.is_known and not word.taint:
            # Its variables have the values at the end of the script.
            use.scope.later.append(word.text)
        elif word.text not in ("", "-"):
            judge.run_text("shell", word, use.scope, use.call)
    return Word("")


def _alias(judge: Judge, use: Use) -> Word:
    for word in use.arguments.operands:
        name, equals, value = word.text.partition("=")
        if equals and value.strip():
            use.scope.aliases[name] = value
            judge.run_text("shell", Word(value, word.taint), use.scope, use.call)
    return Word("")


def _source(judge: Judge, use: Use) -> None:
    for script in use.arguments.operands[:1]:
        if script.text in _STDIN:
            judge.run_text("shell", use.call.stdin or UNKNOWN_WORD, use.scope, use.call)
        elif script.taint or not judge.policy.patterns("sourceable").search(script.text):
            interpreter = _Interpreter(judge, use)
            interpreter.language = "shell"
            interpreter.check_file(script)


_BUILTINS = {"cd": _cd, "set": _set, "read": _read, "trap": _trap, "alias": _alias, "source": _source}


# What a command leaves behind


def note_effects(judge: Judge, use: Use) -> None:
    """Remember the files, links, branches and publications that a command makes."""
    entry = use.program.data
    if use.name in judge.policy.names("compilers") and use.operands:
        target = use.arguments.value("-o", "--output")
        if target is not None and all(_is_judged_source(judge, word, use) for word in use.operands):
            use.scope.built(target.text)
    if "saves" in entry and (entry["saves"] == "*" or use.arguments.has(entry["saves"].split())):
        place = use.arguments.value("-P", "--directory-prefix", "--output-dir")
        for word in use.operands:
            name = word.text.rstrip("/").rsplit("/", 1)[-1]
            use.scope.wrote(f"{place.text}/{name}" if place else name, Word(UNKNOWN, frozenset({"network"})))
    if "links" in entry:
        _note_copies(judge, use, is_link=entry["links"] == "*" or use.arguments.has(entry["links"].split()))
    if "branch" in entry:
        new = use.arguments.value(*entry["branch"].split())
        if new is not None or (use.operands and "--" not in use.arguments.flags):
            use.scope.branch = (new or use.operands[0]).text
    judge.moves_commits = judge.moves_commits or use.sub.partition(" ")[0] in use.program.words("moves_commits")
    if use.sub in use.program.phrases("publishes") and not use.arguments.has(use.program.words("dry_run")):
        options = tuple((option, word.text) for option, word in use.arguments.values)
        place_text = next((value for option, value in options if option == "-C"), ".") if use.name == "git" else "."
        cwd = judge.paths.locate(place_text, use.scope.cwd)
        operands, flags = tuple(word.text for word in use.operands), frozenset(use.arguments.flags)
        judge.published.append(Publication(use.name, operands, flags, options, cwd, judge.moves_commits))


def _is_judged_source(judge: Judge, word: Word, use: Use) -> bool:
    """Return whether a source is one of the repository, or text of the script that reaches nothing outside."""
    if judge.paths.classify(word.text, use.scope.cwd) in ("inside", "top"):
        return word.text != "-"
    written = use.scope.written(word.text) if use.scope.has_made(word.text) else None
    return written is not None and not judge.policy.patterns("native_risk").search(written.text)


def _note_copies(judge: Judge, use: Use, *, is_link: bool) -> None:
    """Remember the links that a command makes, or the file it copies that the script has written."""
    folder = use.arguments.value("-t", "--target-directory")
    operands = use.operands if folder or len(use.operands) >= _PAIR else [*use.operands, Word(".")]
    *sources, last = [*operands, folder] if folder else operands or [Word(".")]
    is_folder = folder is not None or len(sources) > 1 or last.text.endswith(("/", "."))
    for source in sources:
        place = posixpath.join(last.text, posixpath.basename(source.text)) if is_folder else last.text
        content = use.scope.written(source.text)
        if is_link:
            judge.paths.link(place, source.text, use.scope.cwd)
        elif content is not None:
            judge.write(place, content, use.scope, use.call)
