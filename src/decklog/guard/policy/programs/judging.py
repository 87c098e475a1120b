"""The judge's judge: where every simple command of a script is held against the policy."""

import json
import re
from contextlib import suppress
from time import thread_time

from decklog.guard.policy.entries import Finding, Program, Rule
from decklog.guard.policy.paths import Paths
from decklog.guard.policy.policy import Policy
from decklog.guard.policy.programs.builds.made_files import note_made
from decklog.guard.policy.programs.printed import output_of
from decklog.guard.policy.programs.table import check_of
from decklog.guard.policy.programs.use import Use
from decklog.guard.policy.programs.variables import check_production, check_variable, may_change_data
from decklog.guard.policy.shell.options import sort_arguments
from decklog.guard.policy.shell.parse import DEEPEST, LONGEST, MOST_NODES, is_tangled, parse, rough_commands, rough_words
from decklog.guard.policy.shell.scope import Scope
from decklog.guard.policy.shell.script import Reader, TooComplex
from decklog.guard.policy.shell.simple_command import Call, Redirect
from decklog.guard.policy.shell.words import UNKNOWN, Word, decode_ansi, finish, seal
from decklog.guard.policy.verdict import Decision, Publication, Verdict, worst

_LONGEST_CODE = 8_000
# CPU seconds for one judgement, and again for one that goes on in parts. A hook has 20 seconds.
_LONGEST_SECONDS = 4.0
_MOST_PARTS = 200
_PATH_ROLES = {"stand", "read", "list", "write", "create", "delete", "move", "perm", "run", "upload"}
_TAKES_AWAY = {"delete", "move"}
_ODD_PLACES = {"scratch", "scratch-top", "device", "guard", "hooks", "secret", "env", "vault"}
_CHANGES = {"write", "create", "delete", "move"}
_MODE_OPTION = re.compile(r"-[rwxXst]+")
_SLASHED = re.compile(r"/([A-Za-z]+)(?::(.*))?", re.DOTALL)
_ABOUT = {"--version", "--help", "-V", "-h", "version", "help", "-version", "-help", "--usage"}
_CODE = Program(finding=Finding(Decision.ALLOW, "allowed", ""))
_RESERVED = {"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "coproc", "function"}
_INTERPRETERS = {"shell", "python", "code", "debugger"}
# A package's name, with its version and extras behind it.
_PACKAGE = re.compile(r"(@?[A-Za-z0-9][\w./-]*)(?:\[[\w,-]*\])?(?:(?:@|[=<>~!^]=?)[\w.*^~<>=-]*)?$")
_FORGES, _REQUESTS = ("gh", "hub", "glab", "tea"), ("pr create", "mr create")
_MOVES = frozenset(
    ["commit", "merge", "rebase", "cherry-pick", "revert", "am", "pull", "reset", "checkout", "switch", "branch", "update-ref"]
)
_PLAIN_PAGERS = {"cat", "less", "more", "head", "true", ":"}
_SHEBANG = re.compile(r"#!\S*?(?:env\s+(?:-S\s+)?)?(\w+?)[\d.]*\s")
_LANGUAGES = {"python": "python", "node": "other", "ruby": "other", "perl": "other", "php": "other"}
_RUNS = {"argv": "argv", "shell": "shell-line"}
_PRINTED = {"environment": "environment-dump", "secret": "secret-in-output"}


class Judging:
    """Judge one command line; the worst finding so far is in `verdict`."""

    def __init__(self, policy: Policy, root: str | None, text: str) -> None:
        self.policy = policy
        self.paths = Paths(policy, root)
        self.verdict = Verdict(Decision.ALLOW, "allowed", "Nothing in this command needs a person's attention.", text)
        self.published: list[Publication] = []
        self._moves_commits = False
        self._may_change_data = may_change_data(text)
        self.steps = 0
        self.depth = 0
        self._deadline = thread_time() + _LONGEST_SECONDS

    def scope(self, cwd: str = ".") -> Scope:
        """Open the scope of a new script that starts in a directory, given from the root."""
        return Scope(self.policy.patterns["secret_names"], cwd=self.paths.locate(cwd, "."))

    # What a reader and the special checks call

    def spend(self) -> None:
        """Count one step of work, and raise TooComplex when there were too many."""
        self.steps += 1
        if self.steps > MOST_NODES or thread_time() > self._deadline:
            raise TooComplex

    def knows(self, name: str) -> bool:
        """Tell whether a name is that of a program the policy knows."""
        return self.policy.program(name) is not None

    def report(self, rule: str, text: str) -> None:
        """Report a finding that the policy names."""
        self.find(self.policy.findings[rule], text)

    def find(self, finding: Finding, text: str) -> None:
        """Take a finding into account."""
        if finding.decision.rank > self.verdict.decision.rank:
            self.verdict = worst(self.verdict, Verdict(finding.decision, finding.rule, finding.reason, text.strip()))

    def run_script(self, text: str, scope: Scope, stdin: Word | None = None, positional: list[Word] | None = None) -> Word:
        """Judge a script within the script, and tell what it prints."""
        source = text.encode("utf-8", "replace")
        if len(source) > LONGEST or self.depth > DEEPEST // 3 or is_tangled(text):
            raise TooComplex
        self.spend()
        # The outermost text has been looked at.
        self._may_change_data = self._may_change_data or (self.depth > 0 and may_change_data(text))
        self.depth += 1
        try:
            root = parse(source)
            if root.has_error:
                self._roughly(text, scope, stdin)
            return Reader(source, scope.inner(positional), self, self.depth).read(root, stdin)
        finally:
            self.depth -= 1

    def _roughly(self, text: str, scope: Scope, stdin: Word | None) -> None:
        """Judge text that does not parse by every command it may contain."""
        self.report("not-understood", text[:200])
        for command in rough_commands(text.replace("\\\n", " "))[:_MOST_PARTS]:
            self._rough_command(command, scope, stdin)

    def _rough_command(self, command: str, scope: Scope, stdin: Word | None = None) -> None:
        """Judge a command that was cut out of text without a parse."""
        words = [_strip(word) for word in rough_words(command)]
        argv = [found for word in words for found in finish(word, frozenset())]
        while argv and argv[0].text in _RESERVED:
            argv.pop(0)
        if argv:
            self.review(Call(argv, command, stdin=stdin, guessed=True), scope.inner())

    def judge_parts(self, text: str, scope: Scope) -> None:
        """Judge the commands at both ends of a text that is too long or too deeply nested to be judged whole."""
        ends = text if len(text) <= 2 * LONGEST else f"{text[:LONGEST]}\n{text[-LONGEST:]}"
        commands = list(dict.fromkeys(rough_commands(ends.replace("\\\n", " "))))
        self._deadline = thread_time() + _LONGEST_SECONDS
        for command in [*commands[:_MOST_PARTS], *commands[_MOST_PARTS:][-_MOST_PARTS:]]:
            self.steps, self.depth = 0, 0
            with suppress(TooComplex, RecursionError):
                self._rough_command(command, scope)

    def review_redirects(self, redirects: list[Redirect], scope: Scope, text: str) -> None:
        """Judge the files that a command or a statement reads or writes."""
        for redirect in redirects:
            is_descriptor = redirect.operator.endswith("&") and redirect.target.text.rstrip("-").isdigit()
            if is_descriptor or redirect.target.text in ("-", ""):
                continue
            if self.paths.classify(redirect.target.text, scope.cwd) == "socket":
                self.report("reverse-shell", text)
            elif redirect.target.content is None:
                self.path("write" if redirect.writes else "read", redirect.target, scope, text)

    def matches(self, pattern: str, text: str) -> bool:
        """Tell whether a pattern of the policy is found in code, or the code is too long to search."""
        return len(text) > _LONGEST_CODE or self.policy.patterns[pattern].search(text) is not None

    def path(self, role: str, word: Word, scope: Scope, text: str) -> None:
        """Judge what is done to a path."""
        if not word.text or word.content is not None:
            return
        if role in _CHANGES:
            scope.changed(word.text)
        if role in _TAKES_AWAY and self.paths.is_link(word.text, scope.cwd):
            # Only the link goes, not what it leads to.
            return
        finding = self.policy.paths.get((role, self.paths.classify(word.text, scope.cwd)))
        if finding is not None:
            self.find(finding, text)

    # One simple command

    def review(self, call: Call, scope: Scope) -> Word:
        """Judge a simple command and tell what it prints, as far as that is known."""
        self.spend()
        for name, word in call.assigned.items():
            check_variable(self, name, word, call, scope)
        if self._may_change_data and call.argv:
            check_production(self, call, scope)
        self.review_redirects(call.redirects, scope, call.text)
        output = self._command(call, scope) if call.argv else Word("")
        return self._kept(call, scope, output)

    def _kept(self, call: Call, scope: Scope, output: Word) -> Word:
        """Remember what a command writes to a file, and what is left to print."""
        files = [redirect for redirect in call.redirects if redirect.is_output and redirect.target.text]
        written = [redirect for redirect in files if not redirect.operator.endswith("&")]
        for _ in written:
            self.judge_output(output, call.text)
        self.review_written(written, output, scope, call.text)
        return Word("") if written else output

    def review_written(self, redirects: list[Redirect], output: Word, scope: Scope, text: str) -> None:
        """Judge files by what is written to them: without end, nothing at all over data, or where a build gets its tools."""
        for redirect in redirects:
            target = redirect.target.text
            if not redirect.is_output or redirect.operator.endswith("&") or not target:
                continue
            scope.wrote(target, output, append=redirect.operator.endswith(">>"))
            self.written(target, output, scope, Call([], text))
            if "endless" in output.taint and self.paths.classify(target, scope.cwd) != "harmless":
                self.report("fills-disk", text)
            if not output.text and not redirect.operator.endswith(">>") and self.policy.patterns["data_file"].search(target):
                self.report("empties-data", text)
            if self.policy.patterns["other_source"].search(output.text):
                self.report("package-source", text)

    def written(self, path: str, content: Word, scope: Scope, call: Call) -> None:
        """Judge a file by what is written to it, where a build tool runs it."""
        special = check_of("written") if self.paths.is_run_by_tools(path) else None
        if special is not None and content.text.strip(UNKNOWN):
            special(self, Use("", call, _CODE, sort_arguments([Word("--"), Word(path), content]), scope))

    def refusal(self, language: str, word: Word, scope: Scope, call: Call) -> str | None:
        """Give the rule by which code would be refused if it were run, None if it would not be."""
        inner = Judging(self.policy, self.paths.root, call.text)
        inner.paths = self.paths
        inner.steps, inner.depth, inner._deadline = self.steps, self.depth + 1, self._deadline
        inner.run_text(language, word, scope.inner(), call)
        self.steps = inner.steps
        return inner.verdict.rule if inner.verdict.decision is Decision.DENY else None

    def judge_output(self, output: Word, text: str) -> None:
        """Judge what a script prints or writes in the end."""
        for taint, rule in _PRINTED.items():
            if taint in output.taint:
                self.report(rule, text)

    def _command(self, call: Call, scope: Scope) -> Word:
        """Find out which program a command starts, and judge its use."""
        first = call.argv[0]
        name = self.policy.canonical(first.text.rsplit("/", 1)[-1].removesuffix(".exe"))
        if UNKNOWN in name or not name:
            self._dynamic(first, call)
            return Word(UNKNOWN, first.taint)
        program = self.policy.programs.get(name)
        written = scope.written(first.text)
        if written is not None:
            found = _SHEBANG.match(written.text)
            self.run_text(_LANGUAGES.get(found[1], "shell") if found else "shell", written, scope, call)
        if program is None:
            self._unknown(first, call, scope)
        if program is None:
            return Word(UNKNOWN, call.stdin.taint if call.stdin else frozenset())
        if "/" in first.text and written is None and self.paths.classify(first.text, scope.cwd) in _ODD_PLACES:
            # A file there may have any name.
            self.run_file(first, scope, call)
        return self.use(name, program, call, scope)

    def _dynamic(self, first: Word, call: Call) -> None:
        """Report a command whose program is not known."""
        for taint in ("network", "decoded"):
            if taint in first.taint:
                self.report(f"{taint}-to-shell", call.text)
        self.report("dynamic-command", call.text)

    def _unknown(self, first: Word, call: Call, scope: Scope) -> None:
        """Judge a program that the policy does not list: a file of the repository may run."""
        if call.guessed or ({word.text for word in call.argv[1:]} <= _ABOUT and len(call.argv) == 2):
            return
        if "/" in first.text:
            self.run_file(first, scope, call)
        else:
            self.report("unknown-program", call.text)

    def run_file(self, word: Word, scope: Scope, call: Call) -> None:
        """Judge a file that is run, by where it lies; one that the script itself has made in a scratch directory may run."""
        if not (scope.has_made(word.text) and self.paths.classify(word.text, scope.cwd) == "scratch"):
            self.path("run", word, scope, call.text)

    def use(self, name: str, program: Program, call: Call, scope: Scope) -> Word:
        """Judge one use of a known program."""
        started = self._started(Use(name, call, program, sort_arguments([]), scope)) if name in self.policy.starters else None
        if started is not None:
            return self.use(started.name, started.program, started.call, scope)
        stop = program.runs is not None
        given = [_dashed(word) for word in call.argv[1:]] if program.slashes else call.argv[1:]
        arguments = sort_arguments(given, program.options, single=program.single, stop=stop)
        arguments.operands += [word for option, word in arguments.values if program.options.get(option) == "operand"]
        use = Use(name, call, program, arguments, scope)
        if self._is_about(use):
            return Word(UNKNOWN)
        if "network" in use.stdin_taint and name in self.policy.names["takes_in"]:
            self.report("network-host", call.text)
        if not self._only_adds_common(use):
            self._decide(use)
            self._rules(use)
        self._roles(use)
        special = check_of(program.kind or _RUNS.get(program.runs or "", ""))
        if special is not None:
            special(self, use)
        note_made(self, use)
        self._note_published(use)
        return output_of(self, use)

    def _note_published(self, use: Use) -> None:
        """Remember a command that hands commits to others; what is tried only is not handed on."""
        self._moves_commits = self._moves_commits or (use.name == "git" and use.sub.partition(" ")[0] in _MOVES)
        is_push = use.name == "git" and use.sub == "push" and not use.arguments.has(("--dry-run", "-n"))
        if is_push or (use.name in _FORGES and use.sub in _REQUESTS):
            options = tuple((option, word.text) for option, word in use.arguments.values)
            place = next((value for option, value in options if option == "-C" and is_push), ".")
            cwd = self.paths.locate(place, use.scope.cwd)
            operands = tuple(word.text for word in use.operands)
            flags = frozenset(use.arguments.flags)
            self.published.append(Publication(use.name, operands, flags, options, cwd, self._moves_commits))

    def _started(self, use: Use) -> Use | None:
        """Find a subcommand that has an entry of its own because it starts a program, and judge the options before it."""
        own = sort_arguments(use.call.argv[1:], use.program.options, single=use.program.single, stop=True)
        name = f"{use.name} {own.operands[0].text}" if own.operands else ""
        entry = self.policy.programs.get(name)
        if entry is None:
            return None
        inner = Use(name, use.call.inner([Word(name), *own.operands[1:]]), entry, sort_arguments([]), use.scope)
        found = self._started(inner) if entry.level else inner
        if found is not None:
            before = use.call.inner(use.call.argv[: -len(own.operands)])
            outer = Use(use.name, before, use.program, own.without_operands(), use.scope)
            self._rules(outer)
            self._roles(outer)
        return found

    def _is_about(self, use: Use) -> bool:
        """Tell whether a command only asks for a program's version or help."""
        rest = [word.text for word in use.call.argv[1:]]
        return len(rest) == 1 and rest[0] in _ABOUT and use.program.finding.decision is not Decision.DENY

    def _decide(self, use: Use) -> None:
        """Judge a program as such, or by its subcommand."""
        program, finding = use.program, use.program.finding
        words = [word.text for word in use.arguments.operands[:3]]
        if self._only_looks(use):
            use.sub = words[0] if words else ""
            return
        for length in range(len(words), 0, -1):
            sub = " ".join(words[:length])
            if sub in program.subcommands:
                use.sub, finding = sub, program.subcommands[sub]
                break
        else:
            flags = {*use.arguments.flags, *(word.text for word in use.call.argv[1:] if word.text.startswith("-"))}
            listed = [program.subcommands[flag] for flag in flags if flag in program.subcommands]
            if listed:
                finding = max(listed, key=lambda found: found.decision.rank)
            elif program.subcommands and words:
                use.sub = words[0]
        self.find(finding, use.call.text)

    def _only_looks(self, use: Use) -> bool:
        """Tell whether a program that may change much is only asked to show something, or what it would do."""
        if not use.program.dry.isdisjoint(word.text for word in use.call.argv[1:]) or self._only_reads(use):
            return True
        shows = use.program.shows
        return bool(shows) and not use.arguments.operands and shows.issuperset(use.arguments.flags)

    def _only_adds_common(self, use: Use) -> bool:
        """Tell whether a package manager is only told to add packages that so many use that nobody need be asked."""
        words = [word.text for word in use.arguments.operands]
        sub = next((sub for sub in use.program.adds if words[: len(sub.split())] == sub.split()), None)
        if sub is None or not set(use.arguments.flags) <= self.policy.names["adding_options"]:
            return False
        packages = [_PACKAGE.match(word) for word in words[len(sub.split()) :]]
        return bool(packages) and all(found and found[1].lower() in self.policy.names["common_packages"] for found in packages)

    def _only_reads(self, use: Use) -> bool:
        """Tell whether the verb of a client is one that only reads: the first word that is no group of verbs."""
        program, words = use.program, [word.text for word in use.arguments.operands]
        if program.reading is None:
            return False
        verbs = words[1:] if "*" in program.groups else [word for word in words if word not in program.groups]
        return bool(verbs) and program.reading.fullmatch(verbs[0]) is not None

    def _rules(self, use: Use) -> None:
        """Judge a use by the policy's rules for its program."""
        words = " ".join(word.text for word in use.arguments.operands[:3])
        for rule in self.policy.rules.get(use.name, ()):
            if _applies(rule, use, words):
                self.find(rule.finding, use.call.text)

    def _roles(self, use: Use) -> None:
        """Judge every operand and option value by its role."""
        program, operands = use.program, use.operands
        for option, word in use.arguments.values:
            self._role(self._option_role(use, option), word, use)
            if f"{option}={word.text}" not in (given.text for given in use.call.argv):
                self._swallowed(word, use)
        for option, word in use.arguments.followed:
            self._role(self._option_role(use, option), word, use)
        if program.runs is not None:
            return
        for place, word in enumerate(operands):
            role = program.operands
            if place == 0 and program.first is not None and self._has_first(use):
                role = program.first
            elif place == len(operands) - 1 and place > 0 and program.last is not None:
                role = program.last
            self._role(role, word, use)

    def _option_role(self, use: Use, option: str) -> str:
        """Give the role of an option's value; what follows an interpreter's script is not the interpreter's."""
        if use.program.kind in _INTERPRETERS:
            return use.program.options.get(option, "text")
        return self.policy.option_role(use.program, option)

    def _swallowed(self, word: Word, use: Use) -> None:
        """Refuse an option's value that would be refused as an operand: the option may take none here."""
        kind = self.paths.classify(word.text, use.scope.cwd) if use.program.kind != "grep" else ""
        finding = self.policy.paths.get((use.program.operands, kind))
        if finding is not None and finding.decision is Decision.DENY:
            self.find(finding, use.call.text)

    def _has_first(self, use: Use) -> bool:
        """Tell whether the first operand is special; a pattern or a mode given as an option leaves none."""
        if use.program.first == "mode" and any(_MODE_OPTION.fullmatch(word.text) for word in use.call.argv[1:]):
            return False
        return use.program.kind != "grep" or not use.arguments.has(("-e", "-f", "--regexp", "--file", "--files"))

    def role(self, role: str, word: Word, call: Call, scope: Scope) -> None:
        """Judge a word by its role."""
        self._role(role, word, Use("", call, _CODE, sort_arguments([]), scope))

    def _role(self, role: str, word: Word, use: Use) -> None:
        """Judge a word of a program's use by its role."""
        if role == "write" and word.text.startswith("|"):
            # A name that begins so is a command that gets the output.
            self.report("option-runs-program", use.call.text)
            self.run_text("shell", Word(word.text[1:], word.taint), use.scope, use.call)
        elif role in _PATH_ROLES:
            self.path(role, word, use.scope, use.call.text)
        elif role in ("shell", "program"):
            if role == "program" and word.text not in _PLAIN_PAGERS:
                self.report("option-runs-program", use.call.text)
            self.run_text("shell", word, use.scope, use.call)
        elif role == "package":
            self._package(word, use)
        else:
            special = check_of("role " + role)
            if special is not None:
                special(self, Use(use.name, use.call, use.program, use.arguments.of([word]), use.scope))

    def _package(self, word: Word, use: Use) -> None:
        """Judge a package that a tool is told to take along: one that lies in the repository may come."""
        if word.text.startswith("."):
            self.path("load", word, use.scope, use.call.text)
        else:
            self.report("package-runner", use.call.text)

    def run_text(self, language: str, word: Word, scope: Scope, call: Call) -> Word:
        """Judge text that is run as code, by where it came from and by what it says."""
        for taint in ("network", "decoded"):
            if taint in word.taint:
                self.report(f"{taint}-to-shell", call.text)
        if language == "shell":
            if word.text.strip() == UNKNOWN:
                self.report("piped-to-interpreter", call.text)
                return Word(UNKNOWN, word.taint)
            return self.run_script(word.text.replace(UNKNOWN, "${UNKNOWN}"), scope)
        if language == "argv":
            return self.review(Call([Word(text) for text in json.loads(word.text)], call.text), scope)
        special = check_of("code " + language)
        assert special is not None
        special(self, Use(language, call, _CODE, sort_arguments([Word("--"), word]), scope))
        return Word(UNKNOWN, word.taint)


def _dashed(word: Word) -> Word:
    """Write an option such as `/t:Build` as other programs do."""
    found = _SLASHED.fullmatch(word.text)
    return Word(f"-{found[1]}{'=' if found[2] else ''}{found[2] or ''}", word.taint) if found else word


def _strip(word: str) -> str:
    """Take the quotes off a roughly cut word."""
    if word.startswith("$'"):
        return seal(decode_ansi(word[2:].rstrip("'")))
    return word.replace("'", "").replace('"', "").replace("\\", "")


def _given(call: Call) -> list[str]:
    """List the words of a command, and the variables set for it alone as `NAME=value`."""
    words = [word.text for word in call.argv[1:]]
    return words + [f"{name}={word.text}" for name, word in call.assigned.items()] if call.assigned else words


def _applies(rule: Rule, use: Use, words: str) -> bool:
    """Tell whether every condition of a rule holds; `words` are the first operands."""
    operands = use.arguments.operands
    if rule.sub:
        sub = next((sub for sub in rule.sub if words == sub or words.startswith(sub + " ")), None)
        if sub is None:
            return False
        operands = use.arguments.operands[len(sub.split()) :]
    if rule.flags and not use.arguments.has(rule.flags):
        return False
    if rule.without and use.arguments.has(rule.without):
        return False
    if rule.bare and operands:
        return False
    if rule.unless is not None and any(rule.unless.search(word.text) for word in use.call.argv[1:]):
        return False
    if rule.any is not None and not any(map(rule.any.search, _given(use.call))):
        return False
    return rule.words is None or any(rule.words.search(word.text) for word in operands)
