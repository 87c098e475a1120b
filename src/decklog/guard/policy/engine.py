"""The engine: judges every simple command of a script by the policy's data."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from itertools import pairwise
from posixpath import normpath
from time import thread_time
from typing import Any

from decklog.core.errors import Invalid
from decklog.guard.policy.output import command_output, record_effects
from decklog.guard.policy.parse import DEEPEST, LONGEST, MOST_OPERATORS, MOST_STEPS, TooComplex, is_tangled, parse
from decklog.guard.policy.paths import Paths
from decklog.guard.policy.policy import ALLOWED, Entry, Policy
from decklog.guard.policy.programs import start_inner
from decklog.guard.policy.roles import BUILTIN_ROLES
from decklog.guard.policy.scope import Call, Scope
from decklog.guard.policy.script import Reader
from decklog.guard.policy.verdict import CommandVerdict, Decision, Event, Publication
from decklog.guard.policy.words import NO_TAINT, UNKNOWN, Arguments, Word, join_taint

_LONGEST_CODE = 8_000
_MOST_MATCHES = 200
# CPU seconds for one judgement. A hook has 20 seconds.
_LONGEST_SECONDS = 4.0
_CHANGES = {"write", "create", "delete", "move"}
_UNUSUAL_PLACES = {"scratch", "scratch-top", "device", "guard", "hooks", "secret", "env", "vault"}
_INFO_ARGUMENTS = {"--version", "--help", "-V", "-h", "version", "help", "-version", "-help", "--usage"}
# In the order of the reports: of equally strict findings the first counts.
_PRINT_EVENTS = {"environment": Event.PRINTS_ENVIRONMENT, "secret": Event.PRINTS_SECRET}
_CODE_EVENTS = {"network": Event.NETWORK_CODE, "decoded": Event.DECODED_CODE}
# Roles by which a variable is judged that only its name suggests.
_VARIABLE_ROLES = ("load", "place", "write", "settings", "program")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def judge(
    command: str | list[str],
    policy: Policy | None = None,
    *,
    root: str | None = None,
    cwd: str = ".",
    env: Mapping[str, str] | None = None,
) -> CommandVerdict:
    """Judge a command before it runs: a bash command line, or a list of arguments that runs without a shell.

    `root` is the absolute path of the repository; without it, relative paths are inside it. `cwd` is relative to the root, and
    `env` holds additional variables. Nothing is executed and no file is read. Any text gets a verdict; an empty list, another
    type or an invalid variable name raises Invalid.
    """
    return examine(command, policy, root=root, cwd=cwd, env=env)[0]


def examine(
    command: str | list[str],
    policy: Policy | None = None,
    *,
    root: str | None = None,
    cwd: str = ".",
    env: Mapping[str, str] | None = None,
) -> tuple[CommandVerdict, list[Publication]]:
    """Judge a command like `judge`, and return also the commits that it would publish."""
    text = command if isinstance(command, str) else _join(command)
    for name in env or {}:
        if not is_name(name):
            hint = "Use letters, digits and underscores, a letter or an underscore first."
            raise Invalid(f"{name!r} is not a variable name.", hint=hint, name=name)
    given = {name: Word(value.replace("\0", "")) for name, value in (env or {}).items()}
    judgement = PolicyJudgement(policy or Policy.default(), root, text)
    scope = Scope(judgement.policy.patterns("secret_names"), cwd=judgement.paths.locate(cwd, "."))
    argv = [] if isinstance(command, str) else [Word(part.replace("\0", "")) for part in command]
    check = CommandCheck(judgement, Call(argv, text), scope)
    if "\0" in text or "\ufffd" in text.encode("utf-8", "replace").decode("utf-8"):
        check.report(Event.UNPARSED, text[:200])
    try:
        if len(text) > LONGEST:
            raise TooComplex
        if given:
            check.for_call(Call([Word("export")], text, given)).review()
        for name in given.keys() - judgement.policy.names["set_by_bash"]:
            scope.assign(name, given[name])
        check.report_taint(_PRINT_EVENTS, check.review() if argv else check.run_script(text.replace("\0", "")))
    except (TooComplex, RecursionError):
        check.report(Event.TOO_COMPLEX, text[:200])
    return judgement.verdict, judgement.published


def is_name(text: str) -> bool:
    """Return whether a text is a valid variable name."""
    return _NAME.fullmatch(text) is not None


def _join(command: list[str]) -> str:
    """Return a list of arguments as one line; raise Invalid for anything else."""
    if not isinstance(command, list) or not all(isinstance(part, str) for part in command):
        hint = "Pass a command line as text, or a list of argument texts."
        raise Invalid(f"A command is text or a list of text, not {type(command).__name__}.", hint=hint)
    if not command:
        raise Invalid("The list of arguments is empty.", hint="Pass at least a program.")
    return shlex.join(command)


class PolicyJudgement:
    """State while one command line is judged; `verdict` is the strictest so far."""

    def __init__(self, policy: Policy, root: str | None, text: str) -> None:
        self.policy: Policy = policy
        self.paths: Paths = Paths(policy, root)
        self.verdict = CommandVerdict(Decision.ALLOW, "allowed", ALLOWED, text)
        self.published: list[Publication] = []
        self.moves_commits = False
        self.steps = 0
        self.depth = 0
        self._deadline = thread_time() + _LONGEST_SECONDS

    def spend(self) -> None:
        """Count one step of work; raise TooComplex after too many steps or too much time."""
        self.steps += 1
        if self.steps > MOST_STEPS or thread_time() > self._deadline:
            raise TooComplex


class CommandCheck:
    """Check of one simple command in a scope."""

    def __init__(self, judgement: PolicyJudgement, call: Call, scope: Scope) -> None:
        self.judgement: PolicyJudgement = judgement
        self.policy: Policy = judgement.policy
        self.paths: Paths = judgement.paths
        self.call: Call = call
        self.scope: Scope = scope
        self.name = ""
        self.program: Entry = {}
        self.arguments: Arguments = Arguments()
        self.sub = ""
        self.operands: list[Word] = []
        """The operands after the subcommand."""
        self.stdin_taint: frozenset[str] = call.stdin.taint if call.stdin else NO_TAINT
        self.decision: str = Decision.ALLOW

    def for_call(self, call: Call, scope: Scope | None = None) -> "CommandCheck":
        """Return the check of another command in the same judgement."""
        return CommandCheck(self.judgement, call, self.scope if scope is None else scope)

    def taint_except(self, options: Iterable[str]) -> frozenset[str]:
        """Return the taint of standard input and of the arguments, leaving out the values of some options."""
        exempt = [word.text for option, word in self.arguments.values if option in options]
        words = [word for word in self.call.argv if not any(word.text.endswith(text) for text in exempt)]
        return self.stdin_taint | join_taint(words)

    def report(self, event: Event, text: str = "") -> None:
        """Report an event of this command, or of another text."""
        self.add_finding(self.policy.events[event], text=text)

    def add_finding(self, entry: Entry, decision: str = "", text: str = "") -> None:
        """Apply a decision on this command, by default that of the entry, if it is stricter than the verdict."""
        decision = decision or entry.get("decision", Decision.ALLOW)
        if decision > self.judgement.verdict.decision:
            text = (text or self.call.text).strip()
            self.judgement.verdict = CommandVerdict(Decision(decision), entry["id"], entry["reason"], text)

    # Code

    def run_script(self, text: str, stdin: Word | None = None, positional: list[Word] | None = None) -> Word:
        """Judge a script and return its output."""
        source, judgement = text.encode("utf-8", "replace"), self.judgement
        if len(source) > LONGEST or judgement.depth > DEEPEST // 3 or (len(text) > MOST_OPERATORS and is_tangled(text)):
            raise TooComplex
        judgement.spend()
        judgement.depth += 1
        try:
            root = parse(source)
            if root.has_error:
                self.report(Event.UNPARSED, text[:200])
            return Reader(source, self.for_call(self.call, self.scope.inner(positional)), judgement.depth).read(root, stdin)
        finally:
            judgement.depth -= 1

    def run_text(self, language: str, word: Word) -> Word:
        """Judge text that runs as code, by its origin and its content."""
        self.report_taint(_CODE_EVENTS, word)
        if language != "shell":
            self.for_call(self.call).check(language, word)
        elif word.text.strip() == UNKNOWN:
            self.report(Event.OPAQUE_CODE)
        else:
            return self.run_script(word.text.replace(UNKNOWN, "${UNKNOWN}"))
        return Word(UNKNOWN, word.taint)

    def run(self, argv: list[Word], *, keeps_stdin: bool = True) -> Word:
        """Judge a command that the program starts, and return its output."""
        return self.for_call(self.call.inner(argv, keeps_stdin=keeps_stdin)).review()

    def is_refused(self, role: str, word: Word) -> bool:
        """Return whether text would be denied in a role, without changing the verdict."""
        inner = copy(self.judgement)
        inner.verdict = CommandVerdict(Decision.ALLOW, "allowed", ALLOWED, self.call.text)
        inner.published, inner.moves_commits, inner.depth = [], False, self.judgement.depth + 1
        CommandCheck(inner, self.call, self.scope.inner()).check(role, word)
        self.judgement.steps = inner.steps
        return inner.verdict.decision is Decision.DENY

    # Files

    def check_path(self, role: str, word: Word) -> None:
        """Judge an operation on a path; `role` is the operation."""
        if not word.text or word.content is not None:
            return
        if role in _CHANGES:
            self.scope.created.discard(normpath(word.text))
        if role in ("delete", "move") and self.paths.links and self.paths.is_link(word.text, self.scope.cwd):
            # Only the link is deleted, not its target.
            return
        self.add_finding(self.policy.paths.get((role, self.paths.classify(word.text, self.scope.cwd)), {}))

    def run_file(self, word: Word) -> None:
        """Judge running a file by its location; a file that the script created in a scratch directory may run."""
        if not self.scope.has_created(word.text) or self.paths.classify(word.text, self.scope.cwd) != "scratch":
            self.check_path("run", word)

    def check_redirects(self) -> None:
        """Judge the files that the command reads or writes by redirection."""
        for redirect in self.call.redirects:
            target = redirect.target
            if (redirect.operator.endswith("&") and target.text.rstrip("-").isdigit()) or target.text in ("-", ""):
                continue
            if self.paths.classify(target.text, self.scope.cwd) == "socket":
                self.report(Event.SOCKET)
            else:
                self.check_path("write" if redirect.writes else "read", target)

    def check_written_files(self, output: Word) -> None:
        """Judge redirected files by their new content."""
        plain = self.for_call(Call([], self.call.text))
        for redirect in self.call.redirects:
            if redirect.is_output:
                appends = redirect.operator.endswith(">>")
                plain.report_taint(_PRINT_EVENTS, output)
                plain.write(redirect.target.text, output, append=appends)
                if not output.text and not appends:
                    plain.check("emptied", redirect.target)

    def write(self, path: str, content: Word, *, append: bool = False) -> None:
        """Record what is written to a file, and judge it by the tools that later run or read that file."""
        self.scope.record_write(path, content, append=append)
        if "endless" in content.taint and self.paths.classify(path, self.scope.cwd) != "harmless":
            self.report(Event.ENDLESS_OUTPUT)
        if content.text.strip(UNKNOWN):
            self.for_call(self.call).check("written", content)
            for role in self.policy.file_roles(path):
                if self.is_refused(role, content):
                    self.report(Event.REFUSED_LATER)

    def report_taint(self, events: dict[str, Event], word: Word) -> None:
        """Report the events of a word's taint."""
        for taint, event in events.items():
            if taint in word.taint:
                self.report(event)

    # One simple command

    def review(self) -> Word:
        """Judge the command and return its output, as far as known."""
        self.judgement.spend()
        for name, word in self.call.assigned.items():
            self.check_variable(name, word)
        if not self.call.redirects:
            return self._judge_program() if self.call.argv else Word("")
        self.check_redirects()
        output = self._judge_program() if self.call.argv else Word("")
        self.check_written_files(output)
        return Word("") if any(redirect.is_output for redirect in self.call.redirects) else output

    def check_variable(self, name: str, word: Word) -> None:
        """Judge setting one variable."""
        known, plain = self.policy.variables.get(name, {}), self.for_call(self.call)
        self.add_finding(known)
        role = known.get("role", "")
        if role.startswith("options of "):
            self.run([Word(role.removeprefix("options of ")), *(Word(part, word.taint) for part in word.text.split())])
        elif known:
            if role and word.text.strip():
                plain.check(role, word)
        elif self.call.argv and word.is_known:
            # Without a command, only the script sees the name.
            option = self.policy.patterns("option_variable").sub("", name)
            role = self.policy.role_by_name(option)
            if role in _VARIABLE_ROLES or (role == "value" and option != name):
                plain.check(role, word)

    def _judge_program(self) -> Word:
        """Find the program that the command starts, and judge its use."""
        first = self.call.argv[0]
        name = self.policy.canonical_name(first.text.rsplit("/", 1)[-1].removesuffix(".exe"))
        if UNKNOWN in name or not name:
            self.report_taint(_CODE_EVENTS, first)
            self.report(Event.UNKNOWN_NAME)
            return Word(UNKNOWN, first.taint)
        program, written = self.policy.programs.get(name), self.scope.find_written_content(first.text)
        if written is not None:
            self.check("shebang", written)
        if program is not None:
            if "/" in first.text and written is None and self.paths.classify(first.text, self.scope.cwd) in _UNUSUAL_PLACES:
                self.run_file(first)
            return self.use_program(name, program)
        if not (len(self.call.argv) == 2 and self.call.argv[1].text in _INFO_ARGUMENTS):
            # A file of the repository may run.
            if "/" in first.text:
                self.run_file(first)
            else:
                self.report(Event.UNKNOWN_PROGRAM)
        return Word(UNKNOWN, self.stdin_taint)

    def use_program(self, name: str, program: Entry) -> Word:
        """Judge a known program with its arguments, and return its output."""
        started = self._find_subprogram(name, program) if name in self.policy.group_programs else None
        if started is not None:
            return started.use_program(started.name, started.program)
        self.name, self.program, self.decision = name, program, program.get("decision", Decision.ALLOW)
        self.arguments = self._sort_arguments()
        rest = [word.text for word in self.call.argv[1:]]
        if len(rest) == 1 and rest[0] in _INFO_ARGUMENTS and self.decision != Decision.DENY:
            return Word(UNKNOWN)
        self._decide_subcommand()
        self.operands = self.arguments.operands[len(self.sub.split()) :]
        if "adds" not in program or not self._adds_only_common_packages():
            self.add_finding(self.program, self.decision)
            self._check_rules()
        self._check_words()
        printed = start_inner(self)
        record_effects(self)
        return printed if printed is not None else command_output(self)

    def _sort_arguments(self) -> Arguments:
        """Sort the arguments by the program's entry."""
        program, words = self.program, self.call.argv[1:]
        if program.get("slashes"):
            found = [self.policy.patterns("slash_option").fullmatch(word.text) for word in words]
            words = [
                Word(f"-{f[1]}={f[2]}" if f[2] else f"-{f[1]}", w.taint) if f else w for f, w in zip(found, words, strict=True)
            ]
        options = program.get("options", {})
        # Arguments after a module belong to it.
        modules = [option for option, role in options.items() if role == "module"]
        is_single, stops = bool(program.get("single")), bool(program.get("runs"))
        arguments = Arguments(words, options, last=modules, single=is_single, stop=stops)
        arguments.operands += [word for option, word in arguments.values if options.get(option) == "operand"]
        return arguments

    def _find_subprogram(self, name: str, program: Entry) -> "CommandCheck | None":
        """Find a subcommand with its own entry, and judge the options before it."""
        own = Arguments(self.call.argv[1:], program.get("options", ()), single=bool(program.get("single")), stop=True)
        inner_name = f"{name} {own.operands[0].text}" if own.operands else ""
        entry = self.policy.programs.get(inner_name)
        if entry is None:
            return None
        found: CommandCheck | None = self.for_call(self.call.inner([Word(inner_name), *own.operands[1:]]))
        assert found is not None
        found.call.redirects = self.call.redirects
        found.name, found.program = inner_name, entry
        if entry.get("level"):
            found = found._find_subprogram(inner_name, entry)
        if found is not None:
            outer = self.for_call(self.call.inner(self.call.argv[: -len(own.operands)]))
            outer.name, outer.program = name, program
            outer.arguments, own.operands = own, []
            outer._check_rules()
            outer._check_words()
        return found

    def _decide_subcommand(self) -> None:
        """Find the subcommand, and the decision on it or on the program."""
        program, texts = self.program, [word.text for word in self.arguments.operands[:3]]
        if any(key in program for key in ("dry", "reading", "shows")) and self._is_read_only():
            self.sub, self.decision = " ".join(texts[:1]), Decision.ALLOW
            return
        subs = [" ".join(texts[:length]) for length in range(len(texts), 0, -1)]
        subcommands = program.get("subcommands", {})
        sub = next((sub for sub in subs if sub in subcommands), None)
        if sub is not None:
            self.sub, self.decision = sub, subcommands[sub]
        else:
            flags = {*self.arguments.flags, *(word.text for word in self.call.argv[1:] if word.text.startswith("-"))}
            found = [subcommands[flag] for flag in flags if flag in subcommands]
            if found:
                self.decision = max(found)
            elif subcommands and texts and not program.get("scripts"):
                self.sub = texts[0]
        override = program.get("sub", {}).get(self.sub)
        if override is not None:
            options = {**program.get("options", {}), **override.get("options", {})}
            self.program = {**program, **override, "options": options}
            self.arguments = self._sort_arguments()

    def _is_read_only(self) -> bool:
        """Return whether the arguments make a program only show something, or only print what it would do."""
        program, texts = self.program, [word.text for word in self.arguments.operands]
        if any(word.text in program.get("dry", ()) for word in self.call.argv[1:]):
            return True
        if program.get("reading"):
            groups = program.get("groups", ())
            verbs = texts[1:] if "*" in groups else [text for text in texts if text not in groups]
            if verbs and re.fullmatch(program["reading"], verbs[0]):
                return True
        shows = program.get("shows", ())
        return bool(shows) and not texts and set(self.arguments.flags) <= set(shows)

    def _adds_only_common_packages(self) -> bool:
        """Return whether a package manager only adds packages that many projects use."""
        texts = [word.text for word in self.arguments.operands]
        adds = [part.split() for part in self.program["adds"]]
        sub = next((sub for sub in adds if texts[: len(sub)] == sub), None)
        if sub is None or not set(self.arguments.flags) <= self.policy.names["adding_options"]:
            return False
        packages = [self.policy.patterns("package").match(text) for text in texts[len(sub) :]]
        return bool(packages) and all(found and found[1].lower() in self.policy.names["common_packages"] for found in packages)

    def _check_rules(self) -> None:
        """Apply the rules for the program and the rules for all programs."""
        for rule in (entry for name in (self.name, "*") for entry in self.policy.rules.get(name, ())):
            if rule["decision"] > self.judgement.verdict.decision and _matches_rule(rule, self):
                self.add_finding(rule)

    def _check_words(self) -> None:
        """Judge every operand and option value by its role."""
        program, arguments, stdin = self.program, self.arguments, self.call.stdin
        options = program.get("options", {})
        is_language = bool(program.get("language"))
        given = {word.text for word in self.call.argv}
        scripts = [word for option, word in arguments.values if "script" in program and options.get(option) == program["script"]]
        if scripts:
            self.check(program["script"], Word("\n".join(word.text for word in scripts), join_taint(scripts)))
        for option, word in arguments.values:
            if word in scripts:
                continue
            self.check(options.get(option, "text") if is_language else self.policy.option_role(program, option), word)
            if f"{option}={word.text}" not in given and not is_language:
                # The option may take no value here, so that the word is an operand.
                entry = self.policy.paths.get((program.get("operands", ""), self.paths.classify(word.text, self.scope.cwd)), {})
                if entry.get("decision") == Decision.DENY and not program.get("first"):
                    self.add_finding(entry)
        for option, word in arguments.followed if not is_language else ():
            self.check(self.policy.option_role(program, option), word)
        for role, word in self._operand_roles():
            self.check(role, word)
        if stdin is not None and program.get("stdin"):
            files = [redirect.target for redirect in self.call.redirects if not redirect.writes]
            for target in files:
                self.check("load", target)
            if stdin.is_known or not files:
                self.check(program["stdin"], stdin)
        for word in self.operands if program.get("contents") else ():
            written = self.scope.find_written_content(word.text)
            content = word.content if word.content is not None else written.text if written else ""
            self.check(program["contents"], Word(content, word.taint))

    def _operand_roles(self) -> Iterator[tuple[str, Word]]:
        """Yield the operands with their roles."""
        entry, operands = dict(self.program), self.operands
        for case in self.program.get("when", ()):
            if self._matches_case(case):
                entry.update(case)
        has_first = "first" in entry and not self.arguments.has(entry.get("first_unless", ()))
        plain = [id(word) for before, word in pairwise(self.call.argv) if before.text in entry.get("text_after", ())]
        for place, word in enumerate(operands):
            if id(word) in plain:
                continue
            if place == 0 and has_first:
                yield entry["first"], word
            elif "runs" in entry:
                return
            else:
                is_last = place > 0 and place == len(operands) - 1
                yield entry.get("last" if is_last and "last" in entry else "operands", "text"), word
        if len(operands) < entry.get("least", 0):
            yield entry["operands"], Word(entry["default"])

    def _matches_case(self, case: Mapping[str, Any]) -> bool:
        """Return whether the conditions of a `when` entry hold."""
        arguments = self.arguments
        if ("flags" in case and not arguments.has(case["flags"])) or arguments.has(case.get("without", ())):
            return False
        if "only_flags" in case and not set(arguments.flags) <= self.policy.names[case["only_flags"]]:
            return False
        values = [f"{option}={word.text}" for option, word in arguments.values]
        if "only_values" in case and not all(map(self.policy.patterns(case["only_values"]).match, values)):
            return False
        return not case.get("no_output") or all(
            not redirect.is_output or redirect.target.text == "/dev/null" for redirect in self.call.redirects
        )

    # Words by their roles

    def check(self, role: str, word: Word) -> None:
        """Judge a word by its role: a path, a role of the engine, or one that the policy describes."""
        self.judgement.spend()
        if role in self.policy.path_roles and not (role == "write" and word.text.startswith("|")):
            self.check_path(role, word)
            if role == "write" and self.program.get("output") == "network":
                self.scope.record_write(word.text, Word(UNKNOWN, frozenset({"network"})))
            return
        if role in BUILTIN_ROLES:
            BUILTIN_ROLES[role](self, word)
        for part in self.policy.roles.get(role, ()):
            self._check_by_entry(part, word)

    def _check_by_entry(self, part: Entry, word: Word) -> None:
        """Judge a word by one entry of its role."""
        text = word.text
        if "unless" in part and re.search(part["unless"], text):
            return
        is_found = "pattern" not in part
        if not is_found:
            pattern, place = re.compile(part["pattern"]), 0
            if len(text) > _LONGEST_CODE and "id" in part:
                self.report(Event.TOO_COMPLEX)
            for count, found in enumerate(pattern.finditer(text[:_LONGEST_CODE])):
                if part.get("whole") and found.start() != place:
                    break
                if count == _MOST_MATCHES and pattern.groupindex:
                    self.report(Event.TOO_COMPLEX)
                    break
                place, is_found = found.end(), True
                for group, inner in found.groupdict().items():
                    if inner is not None and group[0] != "_":
                        self.check(group_role(group), Word(inner, word.taint))
            if part.get("whole"):
                is_found = place < len(text[:_LONGEST_CODE])
        if "listed" in part:
            is_found = text in self.policy.names[part["listed"]]
        if is_found:
            self.add_finding(part)


def _matches_rule(rule: Entry, command: CommandCheck) -> bool:
    """Return whether every condition of a rule holds."""
    operands, arguments = command.arguments.operands, command.arguments
    texts = [word.text for word in command.call.argv[1:]]
    if "sub" in rule:
        first = " ".join(word.text for word in operands[:3])
        sub = next((sub for sub in rule["sub"] if first == sub or first.startswith(sub + " ")), None)
        if sub is None:
            return False
        operands = operands[len(sub.split()) :]
    if ("flags" in rule and not arguments.has(rule["flags"])) or arguments.has(rule.get("without", ())):
        return False
    if len(operands) < rule.get("least", 0) or (rule.get("no_stdin") and command.call.stdin is not None):
        return False
    if (rule.get("bare") and operands) or ("stdin" in rule and rule["stdin"] not in command.stdin_taint):
        return False
    if "taint" in rule and command.taint_except(rule.get("except_values", ())).isdisjoint(rule["taint"]):
        return False
    if "unless" in rule and any(re.search(rule["unless"], text) for text in texts):
        return False
    if "operands" in rule and not any(re.search(rule["operands"], word.text) for word in operands):
        return False
    given = [*texts, *(f"{name}={word.text}" for name, word in command.call.assigned.items())]
    every = rule.get("any", [])
    for pattern in [every] if isinstance(every, str) else every:
        if not any(re.search(pattern, text) for text in given):
            return False
    if "given" not in rule:
        return True
    given += [f"{name}={values[-1].text}" for name, values in command.scope.variables.items()]
    given += [f"{option.lstrip('-')}={value}" for option, value in pairwise(texts) if option.startswith("-")]
    given += [text.lstrip("-") for text in texts if "=" in text]
    return any(re.search(rule["given"], text) for text in [*given, command.call.text])


def group_role(name: str) -> str:
    """Return the role of a pattern's named group."""
    return name.rstrip("0123456789").replace("_", "-")
