"""Programs that run code: what they run is judged by its language."""

import re
import sys

from decklog.guard.policy.entries import Program
from decklog.guard.policy.programs.python_code import check_python_code
from decklog.guard.policy.programs.snippets import check_snippet
from decklog.guard.policy.programs.use import Judge, Use
from decklog.guard.policy.shell.options import sort_arguments
from decklog.guard.policy.shell.simple_command import Call
from decklog.guard.policy.shell.words import UNKNOWN, Word, decode_ansi

_STDIN = {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
# What a debugger is told to do that only lets the program run.
_GOES_ON = {"c", "cont", "continue", "q", "quit"}
# Clojure runs what the project's settings name so.
_ALIAS = re.compile(r"-[MXT]:[\w:.-]+")
_FILE = re.compile(r"[\w./-]+\.(?:rb|exs|php|js)")
# Python's own modules, of all its versions: the one that is started may be another than the one that judges.
_OF_OTHER_VERSIONS = """
aifc annotationlib asynchat asyncore audioop cgi cgitb chunk compression crypt distutils imghdr imp lib2to3 mailcap msilib nis
nntplib ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib
"""
_PYTHONS_OWN = sys.stdlib_module_names | frozenset(_OF_OTHER_VERSIONS.split())
_KNOWN_SCRIPTS = {"manage.py", "artisan", "setup.py"}


class Start:
    """What an interpreter is started with: code, a module, a script, or nothing but its standard input."""

    def __init__(self, *, reads_stdin: bool = False) -> None:
        self.code: list[Word] = []
        self.module: str | None = None
        self.script: Word | None = None
        self.rest: list[Word] = []
        self.reads_stdin = reads_stdin
        self.flags: set[str] = set()


def start_of(words: list[Word], program: Program, module_flag: bool = False) -> Start:
    """Find out what an interpreter is started with."""
    start, place = Start(), 0
    while place < len(words):
        text = words[place].text
        if text in _STDIN or (text == "-s" and not module_flag):
            start.reads_stdin = True
        elif text == "--":
            pass
        elif not text.startswith("-") and not (text.startswith("+") and len(text) < 4):
            if not start.code:
                start.script, place = words[place], place + 1
            break
        else:
            place += _flag(words, place, program, module_flag, start)
            if start.module is not None:
                break
        place += 1
    start.rest = words[place:]
    return start


def _flag(words: list[Word], place: int, program: Program, module_flag: bool, start: Start) -> int:
    """Read one flag of an interpreter and give the number of further words it used."""
    word = words[place]
    following = words[place + 1] if place + 1 < len(words) else Word("")
    name, equals, value = word.text.partition("=")
    start.flags.add(name)
    if word.text.startswith("--") or word.text in program.code:
        if name in program.code:
            start.code.append(Word(value, word.taint) if equals else following)
            return 0 if equals else 1
        return 1 if name in program.options and not equals else 0
    for index, char in enumerate(word.text[1:], start=1):
        rest = word.text[index + 1 :]
        start.flags.add("-" + char)
        if "-" + char in program.code:
            start.code.append(Word(rest, word.taint) if rest else following)
            return 0 if rest else 1
        if char == "m" and module_flag:
            start.module = rest or following.text
            return 1 if rest else 2
        if "-" + char in program.options:
            return 0 if rest or following.text.startswith("-") else 1
    return 0


def check_shell_program(judge: Judge, use: Use) -> None:
    """Judge a shell by the commands it is given: as an argument, in a file or on standard input."""
    start = start_of(use.call.argv[1:], use.program)
    if start.code:
        code = start.code[0]
        if code.text.startswith(("-", "+")) and start.rest:
            code, start.rest = start.rest[0], start.rest[1:]
        for taint in code.taint & {"network", "decoded"}:
            judge.report(f"{taint}-to-shell", use.call.text)
        if code.text.strip() == UNKNOWN:
            judge.report("piped-to-interpreter", use.call.text)
        else:
            text = code.text.replace(UNKNOWN, "${UNKNOWN}")
            judge.run_script(text, use.scope, use.call.stdin, start.rest[1:])
        return
    _check_source(judge, use, start, "shell")


def _check_interactive(judge: Judge, use: Use, start: Start, language: str) -> None:
    """Judge what stands on standard input of an interpreter that is told to read commands from there besides its script."""
    is_empty = any(redirect.target.text == "/dev/null" and not redirect.writes for redirect in use.call.redirects)
    if start.flags & use.program.interactive and not is_empty:
        _check_source(judge, use, Start(reads_stdin=True), language)


def _check_source(judge: Judge, use: Use, start: Start, language: str) -> None:
    """Judge a script file or standard input."""
    if start.script is not None and not start.reads_stdin:
        _check_file(judge, use, start.script, language)
        name = start.script.text.rsplit("/", 1)[-1]
        if name in _KNOWN_SCRIPTS:
            judge.review(use.call.inner([Word(name), *start.rest]), use.scope)
    elif use.call.stdin is not None:
        judge.run_text(language, use.call.stdin, use.scope, use.call)
        for redirect in use.call.redirects:
            if not redirect.writes:
                judge.path("run", redirect.target, use.scope, use.call.text)
    else:
        judge.report("piped-to-interpreter", use.call.text)


def _check_file(judge: Judge, use: Use, script: Word, language: str) -> None:
    """Judge a script by what is known of its contents, else by where it lies."""
    if "://" in script.text:
        judge.report("network-to-shell", use.call.text)
    written = use.scope.written(script.text)
    if written is not None:
        judge.run_text(language, written, use.scope, use.call)
    if script.content is not None or (script.taint and written is None):
        judge.run_text(language, Word(script.content or UNKNOWN, script.taint), use.scope, use.call)
    else:
        judge.run_file(script, use.scope, use.call)


def check_source(judge: Judge, use: Use) -> None:
    """Judge `source`: the file's contents run in this shell; a virtual environment's own file may."""
    for script in use.arguments.operands[:1]:
        if script.text in _STDIN:
            _check_source(judge, use, Start(reads_stdin=True), "shell")
        elif not judge.policy.patterns["sourceable"].search(script.text) or script.taint:
            _check_file(judge, use, script, "shell")


def check_python(judge: Judge, use: Use) -> None:
    """Judge Python: code by its syntax tree, modules as the programs they are, files by where they lie."""
    start = start_of(use.call.argv[1:], use.program, module_flag=True)
    _check_interactive(judge, use, start, "python")
    if start.module is not None:
        _check_module(judge, use, start.module, start.rest)
        return
    if start.code:
        judge.run_text("python", start.code[0], use.scope, use.call)
    else:
        _check_source(judge, use, start, "python")


def _check_module(judge: Judge, use: Use, module: str, rest: list[Word]) -> None:
    """Judge `python -m`: a known program as such, a script it runs by where that lies, else by what the module is."""
    names = judge.policy.names
    name = module.split(".")[0] if module.split(".")[0] in ("pip", "decklog") else module
    if name in judge.policy.programs and name not in ("code", "test", "trace"):
        judge.review(Call([Word(name), *rest], use.call.text, stdin=use.call.stdin), use.scope)
    elif UNKNOWN in name:
        judge.report("dynamic-command", use.call.text)
    elif [word.text for word in rest] in (["--help"], ["-h"], ["--version"]):
        return
    elif name in names["code_modules"]:
        arguments = sort_arguments(rest, ("-n", "-r", "-u", "-s"))
        for word in [*arguments.operands, *(word for option, word in arguments.values if option == "-s")]:
            judge.run_text("python", word, use.scope, use.call)
    elif name in names["script_modules"]:
        arguments = sort_arguments(rest, ("-c", "-o", "-s", "-m", "-f"))
        for word in arguments.operands[:1]:
            judge.path("run", word, use.scope, use.call.text)
        if any(option == "-c" and word.text not in _GOES_ON for option, word in arguments.values):
            judge.report("inline-code", use.call.text)
    elif name.split(".")[0] in _PYTHONS_OWN:
        if name not in names["safe_modules"]:
            judge.report("python-module", use.call.text)
        for word in rest:
            # Whatever else a module does with a file, what it holds comes out.
            judge.path("read", Word(word.text.partition("=")[2] or word.text, word.taint), use.scope, use.call.text)


def check_code_program(judge: Judge, use: Use) -> None:
    """Judge another language's interpreter."""
    start = start_of(use.call.argv[1:], use.program)
    _check_interactive(judge, use, start, "other")
    if use.name == "deno" and start.script is not None:
        _check_deno(judge, use, start)
        return
    for code in start.code:
        judge.run_text("other", code, use.scope, use.call)
    edits = use.name in ("perl", "ruby") and use.arguments.has(("-i",))
    for word in start.rest if start.code else ():
        judge.path("write" if edits else "read", word, use.scope, use.call.text)
        if edits and judge.paths.is_run_by_tools(word.text):
            for code in start.code:
                judge.written(word.text, Word(decode_ansi(code.text)), use.scope, use.call)
    if use.name in ("clojure", "clj") and any(_ALIAS.fullmatch(word.text) for word in use.call.argv):
        return
    if not start.code and not use.arguments.has(("--test", "--check", "-l", "--watch", "-S", "-v", "-c", "-m", "-i", "--ini")):
        _check_source(judge, use, start, "other")


def check_debugger(judge: Judge, use: Use) -> None:
    """Judge a debugger: the commands it is given, and the program that it starts with arguments of its own."""
    texts = [word.text for word in use.call.argv]
    place = next((texts.index(mark) for mark in ("--args", "--") if mark in texts), len(texts))
    start, inner = start_of(use.call.argv[1:place], use.program), use.call.argv[place + 1 :]
    for code in start.code:
        if not judge.policy.patterns["debugger_command"].fullmatch(code.text):
            judge.run_text("other", code, use.scope, use.call)
    if inner:
        judge.review(use.call.inner(inner), use.scope)
    elif not start.code:
        check_code_program(judge, use)
    for word in start.rest:
        judge.run_file(word, use.scope, use.call)


def _check_deno(judge: Judge, use: Use, start: Start) -> None:
    """Judge deno by its subcommand: code, a script, or a task."""
    files = [word for word in start.rest if not word.text.startswith("-")]
    match start.script.text if start.script else "":
        case "eval":
            for word in files[:1]:
                judge.run_text("other", word, use.scope, use.call)
        case "install" | "publish" | "deploy" | "upgrade":
            judge.report("package-runner", use.call.text)
        case _:
            for word in files[:1]:
                _check_file(judge, use, word, "other")


def check_python_text(judge: Judge, use: Use) -> None:
    """Judge a piece of Python."""
    for word in use.arguments.operands:
        check_python_code(judge, word.text, use.scope, use.call)


def check_query(judge: Judge, use: Use) -> None:
    """Judge the code that a framework's shell is given: it may read records, and not change them."""
    codes = [word for option, word in use.arguments.values if use.program.options.get(option) == "query"]
    for word in codes:
        check_python_code(judge, word.text, use.scope, use.call)
        if judge.matches("record_change", word.text):
            judge.report("inline-code", use.call.text)
    if not codes:
        judge.report("inline-code", use.call.text)


def check_code_or_file(judge: Judge, use: Use) -> None:
    """Judge what a framework's runner is given: code, or the file that holds it."""
    for word in use.arguments.operands[:1]:
        if _FILE.fullmatch(word.text):
            judge.path("run", word, use.scope, use.call.text)
        else:
            check_snippet(judge, word.text, use.scope, use.call)


def check_other_text(judge: Judge, use: Use) -> None:
    """Judge a piece of code in another language."""
    for word in use.arguments.operands:
        check_snippet(judge, word.text, use.scope, use.call)
