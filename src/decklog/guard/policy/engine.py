"""The engine: judges every simple command of a script by the policy's data."""

from itertools import pairwise
from time import thread_time

from decklog.guard.policy.output import note_effects, output_of
from decklog.guard.policy.parse import DEEPEST, LONGEST, MOST_STEPS, TooComplex, is_tangled, parse
from decklog.guard.policy.paths import Paths
from decklog.guard.policy.policy import ALLOWED, Policy, PolicyFinding, PolicyTable
from decklog.guard.policy.programs import start_inner
from decklog.guard.policy.roles import BUILTIN_ROLES
from decklog.guard.policy.scope import Scope
from decklog.guard.policy.script import Reader
from decklog.guard.policy.use import Call, Redirect, Use
from decklog.guard.policy.verdict import CommandVerdict, Decision, Event, Publication
from decklog.guard.policy.words import UNKNOWN, Arguments, Word, join_taint, sort_arguments

_LONGEST_CODE = 8_000
_MOST_MATCHES = 200
# CPU seconds for one judgement. A hook has 20 seconds.
_LONGEST_SECONDS = 4.0
_CHANGES = {"write", "create", "delete", "move"}
_ODD_PLACES = {"scratch", "scratch-top", "device", "guard", "hooks", "secret", "env", "vault"}
_ABOUT = {"--version", "--help", "-V", "-h", "version", "help", "-version", "-help", "--usage"}
_PRINTED = {"environment": Event.PRINTS_ENVIRONMENT, "secret": Event.PRINTS_SECRET}
_CODE_TAINTS = {"network": Event.NETWORK_CODE, "decoded": Event.DECODED_CODE}
# Roles by which a variable is judged that only its name suggests.
_ROLES_OF_VARIABLES = ("load", "place", "write", "settings", "program")


class Judging:
    """Judge one command line; `verdict` is the strictest so far."""

    def __init__(self, policy: Policy, root: str | None, text: str) -> None:
        self.policy = policy
        self.paths = Paths(policy, root)
        self.verdict = CommandVerdict(Decision.ALLOW, "allowed", ALLOWED, text)
        self.published: list[Publication] = []
        self.moves_commits = False
        self.steps = 0
        self.depth = 0
        self._deadline = thread_time() + _LONGEST_SECONDS

    def spend(self) -> None:
        """Count one step of work, and raise TooComplex after too many."""
        self.steps += 1
        if self.steps > MOST_STEPS or thread_time() > self._deadline:
            raise TooComplex

    def report(self, event: Event, text: str) -> None:
        """Report an event."""
        if event in self.policy.events:
            self.find(self.policy.events[event], text)

    def find(self, finding: PolicyFinding, text: str) -> None:
        """Take a finding into account."""
        if finding.decision.rank > self.verdict.decision.rank:
            self.verdict = CommandVerdict(*finding, text.strip())

    # Scripts

    def run_script(self, text: str, scope: Scope, stdin: Word | None = None, positional: list[Word] | None = None) -> Word:
        """Judge a script and return its output."""
        source = text.encode("utf-8", "replace")
        if len(source) > LONGEST or self.depth > DEEPEST // 3 or is_tangled(text):
            raise TooComplex
        self.spend()
        self.depth += 1
        try:
            root = parse(source)
            if root.has_error:
                self.report(Event.UNPARSED, text[:200])
            return Reader(source, scope.inner(positional), self, self.depth).read(root, stdin)
        finally:
            self.depth -= 1

    def run_text(self, language: str, word: Word, scope: Scope, call: Call) -> Word:
        """Judge text that is run as code, by its origin and its content."""
        self._report_taint(_CODE_TAINTS, word, call.text)
        if language != "shell":
            self.check(language, word, Use(self, call, scope))
        elif word.text.strip() == UNKNOWN:
            self.report(Event.OPAQUE_CODE, call.text)
        else:
            return self.run_script(word.text.replace(UNKNOWN, "${UNKNOWN}"), scope)
        return Word(UNKNOWN, word.taint)

    def is_refused(self, role: str, word: Word, scope: Scope, call: Call) -> bool:
        """Return whether text would be denied in a role, without taking that into account."""
        inner = Judging(self.policy, None, call.text)
        inner.paths, inner.steps, inner.depth, inner._deadline = self.paths, self.steps, self.depth + 1, self._deadline
        inner.check(role, word, Use(inner, call, scope.inner()))
        self.steps = inner.steps
        return inner.verdict.decision is Decision.DENY

    # Files

    def check_path(self, role: str, word: Word, scope: Scope, text: str) -> None:
        """Judge what is done to a path."""
        if not word.text or word.content is not None:
            return
        if role in _CHANGES:
            scope.changed(word.text)
        if role in ("delete", "move") and self.paths.is_link(word.text, scope.cwd):
            # Only the link goes, not its target.
            return
        finding = self.policy.paths.get((role, self.paths.classify(word.text, scope.cwd)))
        if finding is not None:
            self.find(finding, text)

    def run_file(self, word: Word, scope: Scope, call: Call) -> None:
        """Judge a file that is run by its place; one that the script made in a scratch directory may run."""
        if not (scope.has_made(word.text) and self.paths.classify(word.text, scope.cwd) == "scratch"):
            self.check_path("run", word, scope, call.text)

    def review_redirects(self, redirects: list[Redirect], scope: Scope, text: str) -> None:
        """Judge the files that a command reads or writes by redirection."""
        for redirect in redirects:
            target = redirect.target
            if (redirect.operator.endswith("&") and target.text.rstrip("-").isdigit()) or target.text in ("-", ""):
                continue
            if self.paths.classify(target.text, scope.cwd) == "socket":
                self.report(Event.SOCKET, text)
            else:
                self.check_path("write" if redirect.writes else "read", target, scope, text)

    def review_written(self, redirects: list[Redirect], output: Word, scope: Scope, text: str) -> None:
        """Judge redirected files by their new content."""
        call = Call([], text)
        for redirect in redirects:
            if redirect.is_output:
                appends = redirect.operator.endswith(">>")
                self.check_printed(output, text)
                self.write(redirect.target.text, output, scope, call, append=appends)
                if not output.text and not appends:
                    self.check("emptied", redirect.target, Use(self, call, scope))

    def write(self, path: str, content: Word, scope: Scope, call: Call, *, append: bool = False) -> None:
        """Remember what a command writes to a file, and judge it where a tool runs or reads that file."""
        scope.wrote(path, content, append=append)
        if "endless" in content.taint and self.paths.classify(path, scope.cwd) != "harmless":
            self.report(Event.ENDLESS_OUTPUT, call.text)
        if not content.text.strip(UNKNOWN):
            return
        self.check("written", content, Use(self, call, scope))
        for role in self.policy.file_roles(path):
            if self.is_refused(role, content, scope, call):
                self.report(Event.REFUSED_LATER, call.text)

    def check_printed(self, output: Word, text: str) -> None:
        """Judge what a script prints or writes in the end."""
        self._report_taint(_PRINTED, output, text)

    def _report_taint(self, events: dict[str, Event], word: Word, text: str) -> None:
        """Report the events of a word's taint, in one order: of equally strict findings the first counts."""
        for taint, event in events.items():
            if taint in word.taint:
                self.report(event, text)

    # One simple command

    def review(self, call: Call, scope: Scope) -> Word:
        """Judge a simple command and return its output, as far as known."""
        self.spend()
        for name, word in call.assigned.items():
            self.check_variable(name, word, call, scope)
        self.review_redirects(call.redirects, scope, call.text)
        output = self._command(call, scope) if call.argv else Word("")
        self.review_written(call.redirects, output, scope, call.text)
        return Word("") if any(redirect.is_output for redirect in call.redirects) else output

    def check_variable(self, name: str, word: Word, call: Call, scope: Scope) -> None:
        """Judge setting one variable."""
        known = self.policy.variables.get(name)
        if isinstance(known, PolicyFinding):
            self.find(known, call.text)
        elif known is not None and known.startswith("options of "):
            program = Word(known.removeprefix("options of "))
            self.review(call.inner([program, *(Word(part, word.taint) for part in word.text.split())]), scope)
        elif known is not None:
            if word.text.strip():
                self.check(known, word, Use(self, call, scope))
        elif call.argv and word.is_known:
            # Without a command, only the script sees the name.
            option = self.policy.patterns("option_variable").sub("", name)
            role = self.policy.role_by_name(option)
            if role in _ROLES_OF_VARIABLES or (role == "value" and option != name):
                self.check(role, word, Use(self, call, scope))

    def _command(self, call: Call, scope: Scope) -> Word:
        """Find out which program a command starts, and judge its use."""
        first = call.argv[0]
        name = self.policy.canonical(first.text.rsplit("/", 1)[-1].removesuffix(".exe"))
        if UNKNOWN in name or not name:
            self._report_taint(_CODE_TAINTS, first, call.text)
            self.report(Event.UNKNOWN_NAME, call.text)
            return Word(UNKNOWN, first.taint)
        program, written = self.policy.program(name), scope.written(first.text)
        if written is not None:
            self.check("shebang", written, Use(self, call, scope))
        if program is not None:
            if "/" in first.text and written is None and self.paths.classify(first.text, scope.cwd) in _ODD_PLACES:
                self.run_file(first, scope, call)
            return self.use(name, program, call, scope)
        if not (len(call.argv) == 2 and call.argv[1].text in _ABOUT):
            # A file of the repository may run.
            if "/" in first.text:
                self.run_file(first, scope, call)
            else:
                self.report(Event.UNKNOWN_PROGRAM, call.text)
        return Word(UNKNOWN, call.stdin.taint if call.stdin else frozenset())

    def use(self, name: str, program: PolicyTable, call: Call, scope: Scope) -> Word:
        """Judge one use of a known program."""
        started = self._started(name, program, call, scope) if name in self.policy.starters else None
        if started is not None:
            return self.use(started.name, started.program, started.call, scope)
        use = Use(self, call, scope, name, program)
        use.arguments = self._sorted(program, call.argv[1:])
        rest = [word.text for word in call.argv[1:]]
        if len(rest) == 1 and rest[0] in _ABOUT and program.finding.decision is not Decision.DENY:
            return Word(UNKNOWN)
        self._decide(use)
        if not self._only_adds_common(use):
            self.find(use.finding, call.text)
            self._check_rules(use)
        self._check_words(use)
        printed = start_inner(use)
        note_effects(use)
        return printed if printed is not None else output_of(use)

    def _sorted(self, program: PolicyTable, words: list[Word]) -> Arguments:
        """Sort the arguments of a program by its entry."""
        if program.get("slashes"):
            found = [self.policy.patterns("slash_option").fullmatch(word.text) for word in words]
            words = [
                Word(f"-{f[1]}={f[2]}" if f[2] else f"-{f[1]}", w.taint) if f else w for f, w in zip(found, words, strict=True)
            ]
        arguments = sort_arguments(words, program.options, single=bool(program.get("single")), stop=bool(program.get("runs")))
        arguments.operands += [word for option, word in arguments.values if program.options.get(option) == "operand"]
        return arguments

    def _started(self, name: str, program: PolicyTable, call: Call, scope: Scope) -> Use | None:
        """Find a subcommand with its own entry, and judge the options before it."""
        own = sort_arguments(call.argv[1:], program.options, single=bool(program.get("single")), stop=True)
        inner_name = f"{name} {own.operands[0].text}" if own.operands else ""
        entry = self.policy.program(inner_name)
        if entry is None:
            return None
        inner = call.inner([Word(inner_name), *own.operands[1:]])
        inner.redirects = call.redirects
        found = (
            self._started(inner_name, entry, inner, scope) if entry.get("level") else Use(self, inner, scope, inner_name, entry)
        )
        if found is not None:
            outer = Use(self, call.inner(call.argv[: -len(own.operands)]), scope, name, program)
            outer.arguments, own.operands = own, []
            self._check_rules(outer)
            self._check_words(outer)
        return found

    def _decide(self, use: Use) -> None:
        """Find the subcommand of a use, and the finding about the program or the subcommand."""
        program, texts = use.program, [word.text for word in use.arguments.operands[:3]]
        if self._only_looks(use):
            use.sub, use.finding = " ".join(texts[:1]), self.policy.finding({})
            return
        subs = [" ".join(texts[:length]) for length in range(len(texts), 0, -1)]
        sub = next((sub for sub in subs if sub in program.subcommands), None)
        if sub is not None:
            use.sub, use.finding = sub, program.subcommands[sub]
        else:
            flags = {*use.arguments.flags, *(word.text for word in use.call.argv[1:] if word.text.startswith("-"))}
            found = [program.subcommands[flag] for flag in flags if flag in program.subcommands]
            if found:
                use.finding = max(found, key=lambda finding: finding.decision.rank)
            elif program.subcommands and texts and not program.get("scripts"):
                use.sub = texts[0]
        override = program.data.get("sub", {}).get(use.sub)
        if override is not None:
            options = {**program.data.get("options", {}), **override.get("options", {})}
            use.program = PolicyTable({**program.data, **override, "options": options}, self.policy)
            use.arguments = self._sorted(use.program, use.call.argv[1:])

    def _only_looks(self, use: Use) -> bool:
        """Return whether a program that may change much only shows something, or what it would do."""
        program, texts = use.program, [word.text for word in use.arguments.operands]
        if not program.words("dry").isdisjoint(word.text for word in use.call.argv[1:]):
            return True
        if program.get("reading"):
            groups = program.words("groups")
            verbs = texts[1:] if "*" in groups else [text for text in texts if text not in groups]
            pattern = program.pattern("reading")
            if verbs and pattern and pattern.fullmatch(verbs[0]):
                return True
        shows = program.words("shows")
        return bool(shows) and not texts and shows.issuperset(use.arguments.flags)

    def _only_adds_common(self, use: Use) -> bool:
        """Return whether a package manager only adds packages that many projects use."""
        texts = [word.text for word in use.arguments.operands]
        adds = [part.split() for part in use.program.phrases("adds")]
        sub = next((sub for sub in adds if texts[: len(sub)] == sub), None)
        if sub is None or not set(use.arguments.flags) <= self.policy.names("adding_options"):
            return False
        packages = [self.policy.patterns("package").match(text) for text in texts[len(sub) :]]
        return bool(packages) and all(found and found[1].lower() in self.policy.names("common_packages") for found in packages)

    def _check_rules(self, use: Use) -> None:
        """Judge a use by the rules about its program, and about all programs."""
        for rule in (entry for name in (use.name, "*") for entry in self.policy.filed("rules", "programs", name)):
            if rule.finding.decision.rank > self.verdict.decision.rank and _applies(rule, use):
                self.find(rule.finding, use.call.text)

    def _check_words(self, use: Use) -> None:
        """Judge every operand and option value by its role."""
        program, arguments = use.program, use.arguments
        is_language = bool(program.get("language"))
        given = {word.text for word in use.call.argv}
        scripts = [word for option, word in arguments.values if program.get("script") == program.options.get(option)]
        if scripts:
            use.check(program.get("script"), Word("\n".join(word.text for word in scripts), join_taint(scripts)))
        for option, word in arguments.values:
            if word in scripts:
                continue
            use.check(program.options.get(option, "text") if is_language else self.policy.option_role(program, option), word)
            if f"{option}={word.text}" not in given and not is_language:
                # The option may take no value here, so that the word is an operand.
                finding = self.policy.paths.get((program.get("operands"), self.paths.classify(word.text, use.scope.cwd)))
                if finding is not None and finding.decision is Decision.DENY and not program.get("first"):
                    self.find(finding, use.call.text)
        for option, word in arguments.followed if not is_language else ():
            use.check(self.policy.option_role(program, option), word)
        for role, word in use.operand_roles():
            use.check(role, word)
        if use.call.stdin is not None and program.get("stdin"):
            files = [redirect.target for redirect in use.call.redirects if not redirect.writes]
            for target in files:
                use.check("load", target)
            if use.call.stdin.is_known or not files:
                use.check(program.get("stdin"), use.call.stdin)
        for word in use.operands if program.get("contents") else ():
            written = use.scope.written(word.text)
            content = word.content if word.content is not None else written.text if written else ""
            use.check(program.get("contents"), Word(content, word.taint))

    def check(self, role: str, word: Word, use: Use) -> None:
        """Judge a word of a use by its role: a path, a role of the engine, or one that the policy describes."""
        self.spend()
        if role in self.policy.path_roles and not (role == "write" and word.text.startswith("|")):
            use.check_path(role, word)
            if role == "write" and use.program.get("output") == "network":
                use.scope.wrote(word.text, Word(UNKNOWN, frozenset({"network"})))
            return
        if role in BUILTIN_ROLES:
            BUILTIN_ROLES[role](use, word)
        for part in self.policy.filed("roles", "name", role):
            self._check_by_entry(part, word, use)

    def _check_by_entry(self, part: PolicyTable, word: Word, use: Use) -> None:
        """Judge a word by one entry of its role."""
        text, pattern, unless = word.text, part.pattern("pattern"), part.pattern("unless")
        if unless is not None and unless.search(text):
            return
        is_found = pattern is None
        has_finding = "id" in part.data
        if len(text) > _LONGEST_CODE and has_finding and pattern is not None:
            self.report(Event.TOO_COMPLEX, use.call.text)
        if pattern is not None:
            place = 0
            for count, found in enumerate(pattern.finditer(text[:_LONGEST_CODE])):
                if part.get("whole") and found.start() != place:
                    break
                if count == _MOST_MATCHES and part.groups:
                    self.report(Event.TOO_COMPLEX, use.call.text)
                    break
                place, is_found = found.end(), True
                for group, role in part.groups.items():
                    if found[group] is not None:
                        use.check(role, Word(found[group], word.taint))
            if part.get("whole"):
                is_found = place < len(text[:_LONGEST_CODE])
        if part.get("listed"):
            is_found = text in self.policy.names(part.get("listed"))
        if is_found and has_finding:
            self.find(part.finding, use.call.text)


def _applies(rule: PolicyTable, use: Use) -> bool:
    """Return whether every condition of a rule holds."""
    operands, arguments = use.arguments.operands, use.arguments
    texts = [word.text for word in use.call.argv[1:]]
    if rule.get("sub"):
        first = " ".join(word.text for word in operands[:3])
        sub = next((sub for sub in rule.phrases("sub") if first == sub or first.startswith(sub + " ")), None)
        if sub is None:
            return False
        operands = operands[len(sub.split()) :]
    if (rule.get("flags") and not arguments.has(rule.words("flags"))) or arguments.has(rule.words("without")):
        return False
    if len(operands) < (rule.get("least") or 0) or (rule.get("no_stdin") and use.call.stdin is not None):
        return False
    if (rule.get("bare") and operands) or (rule.get("stdin") and not use.stdin_taint & rule.words("stdin")):
        return False
    if rule.get("taint") and not use.taint_except(rule.words("except_values")) & rule.words("taint"):
        return False
    unless, wanted, given_pattern = rule.pattern("unless"), rule.pattern("operands"), rule.pattern("given")
    if unless is not None and any(map(unless.search, texts)):
        return False
    if wanted is not None and not any(wanted.search(word.text) for word in operands):
        return False
    given = [*texts, *(f"{name}={word.text}" for name, word in use.call.assigned.items())]
    if not all(any(map(pattern.search, given)) for pattern in rule.patterns("any")):
        return False
    if given_pattern is None:
        return True
    given += [f"{name}={values[-1].text}" for name, values in use.scope.variables.items()]
    given += [f"{option.lstrip('-')}={value}" for option, value in pairwise(texts) if option.startswith("-")]
    given += [text.lstrip("-") for text in texts if "=" in text]
    return any(map(given_pattern.search, [*given, use.call.text]))
