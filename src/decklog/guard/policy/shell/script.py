"""Reading of a parsed script in the order it would run, handing every simple command to a judge."""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, product
from math import prod
from typing import Protocol

from decklog.guard.policy.shell.expansion import Expander
from decklog.guard.policy.shell.parse import DEEPEST, Node, text_of
from decklog.guard.policy.shell.scope import Function, Scope
from decklog.guard.policy.shell.simple_command import Call, Redirect
from decklog.guard.policy.shell.words import UNKNOWN, UNKNOWN_WORD, Word

_MOST_CHOICES = 64
_REDIRECTS = {"file_redirect", "herestring_redirect", "heredoc_redirect"}
_SKIPPED = {"comment", "heredoc_start", "heredoc_end", "file_descriptor", "variable_name"}
_LOOPS = {"for_statement", "while_statement", "c_style_for_statement"}
_STATEMENTS = {"do_group", "program", "list", "compound_statement", "subshell"}
_ALWAYS = {":", "true", "1", "1 -eq 1", "1 = 1", ""}
_BRANCHING = {"if_statement", "while_statement", "for_statement", "case_statement", "c_style_for_statement"}
_WORDS = {
    "word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "simple_expansion",
    "expansion", "number", "command_substitution", "process_substitution", "arithmetic_expansion",
    "brace_expression", "extglob_pattern", "regex", "array", "subscript",
}  # fmt: skip


# The grammar leaves out a lone dash that stands right before a here-document.
_LOST_DASH = re.compile(rb"[ \t]+-[ \t]*<<(?!<)")
_SUBSCRIPT_COMMAND = re.compile(r"\w\[[^\]]*(?:\$\(|`)")


class TooComplex(Exception):
    """The script is too long or too deeply nested to be judged."""


class Reviewer(Protocol):
    """What the reader needs of a judge."""

    def review(self, call: Call, scope: Scope) -> Word:
        """Judge a simple command and tell what it prints, as far as that is known."""

    def review_redirects(self, redirects: list[Redirect], scope: Scope, text: str) -> None:
        """Judge the files that a compound statement reads or writes."""

    def review_written(self, redirects: list[Redirect], output: Word, scope: Scope, text: str) -> None:
        """Judge the files that a statement writes by what it writes to them."""

    def run_script(self, text: str, scope: Scope) -> Word:
        """Judge a script within the script, and tell what it prints."""

    def knows(self, name: str) -> bool:
        """Tell whether a name is that of a program the policy knows."""

    def spend(self) -> None:
        """Count one step of work, and raise TooComplex when there were too many."""

    def report(self, rule: str, text: str) -> None:
        """Report a finding that the policy has a rule for."""


def combine(outputs: list[Word]) -> Word:
    """Join what several commands print."""
    if not outputs:
        return Word("")
    if len(outputs) == 1:
        return outputs[0]
    return Word("\n".join(word.text for word in outputs), frozenset().union(*(word.taint for word in outputs)))


class Reader:
    """Walk one script."""

    def __init__(self, source: bytes, scope: Scope, reviewer: Reviewer, depth: int = 0) -> None:
        self.source = source
        self.scope = scope
        self.reviewer = reviewer
        self.depth = depth
        self.uncalled: dict[str, Function] = {}
        self.running: set[str] = set()

    def read(self, root: Node, stdin: Word | None = None) -> Word:
        """Read a whole script, then the functions it defines and never calls."""
        output = self.walk(root, stdin)
        while self.scope.later:
            self.reviewer.run_script(self.scope.later.pop(), self.scope)
        for name, function in list(self.uncalled.items()):
            self.call_function(name, function, Call([Word(name)], name), None)
        return output

    def walk(self, node: Node, stdin: Word | None) -> Word:
        """Read one statement and tell what it prints."""
        self.reviewer.spend()
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooComplex
        try:
            return self._statement(node, stdin)
        finally:
            self.depth -= 1

    def _statement(self, node: Node, stdin: Word | None) -> Word:
        """Choose how to read a statement by its kind."""
        match node.type:
            case "command":
                return self._command(node, stdin, [], [])
            case "pipeline":
                return self._pipeline(node, stdin)
            case "redirected_statement":
                return self._redirected(node, stdin)
            case "subshell":
                with self._inner_scope():
                    return self._children(node, stdin)
            case "variable_assignment":
                self._assign(node)
            case "declaration_command" | "unset_command":
                return self._declare(node)
            case "function_definition":
                self._define(node)
            case "test_command" if _SUBSCRIPT_COMMAND.search(text_of(node, self.source)):
                self.reviewer.report("hidden-command", text_of(node, self.source))
                return self._children(node, stdin)
            case "for_statement":
                self._check_flood(node)
                return self._loop(node, stdin)
            case kind if kind in _WORDS or kind == "command_name":
                self._expander().fields(node)
            case kind if kind in _REDIRECTS:
                return self._read_file(node)
            case "list":
                with self._uncertain(node):
                    return self._children(node, stdin)
            case kind if kind not in _SKIPPED:
                self._check_flood(node)
                with self._branch(kind in _BRANCHING):
                    return self._children(node, stdin)
        return Word("")

    def _read_file(self, node: Node) -> Word:
        """Read a redirection that stands alone, as in `$(<file)`, which gives what the file holds."""
        redirects: list[Redirect] = []
        word = self._redirect(node, redirects, [], [])
        self.reviewer.review_redirects(redirects, self.scope, text_of(node, self.source))
        self.reviewer.review_written(redirects, Word(""), self.scope, text_of(node, self.source))
        return word or Word("")

    def _children(self, node: Node, stdin: Word | None) -> Word:
        """Read the statements below a node, one after the other."""
        outputs = [self.walk(child, stdin) for child in node.children if child.is_named]
        return combine([word for word in outputs if word.text or word.taint])

    def _pipeline(self, node: Node, stdin: Word | None) -> Word:
        """Read a pipeline, each command's output going into the next."""
        output = stdin
        for child in node.children:
            if child.is_named and child.type != "comment":
                output = self.walk(child, output)
        return output or Word("")

    @contextmanager
    def _inner_scope(self) -> Iterator[None]:
        """Read what follows in a scope of its own."""
        outer, self.scope = self.scope, self.scope.inner()
        try:
            yield
        finally:
            self.scope = outer

    @contextmanager
    def _uncertain(self, node: Node) -> Iterator[None]:
        """Read `a && b`: whether b has run is known within the list, and no longer behind it."""
        made = set(self.scope.made)
        yield
        if node.parent is None or node.parent.type != "list":
            self.scope.made.intersection_update(made)

    @contextmanager
    def _branch(self, conditional: bool) -> Iterator[None]:
        """Read what follows as something that may or may not happen."""
        self.scope.conditional += conditional
        try:
            yield
        finally:
            self.scope.conditional -= conditional

    def _expander(self) -> Expander:
        """Give an expander that sees the scope as it is now."""
        return Expander(self.source, self.scope, self._substitute, self._run_text)

    def _run_text(self, text: str) -> Word:
        """Read a command line that stands in a word."""
        return self.reviewer.run_script(text, self.scope)

    def _substitute(self, node: Node) -> Word:
        """Read the commands of a substitution in a scope of their own."""
        with self._inner_scope():
            self.reviewer.spend()
            self.depth += 1
            if self.depth > DEEPEST:
                raise TooComplex
            try:
                return self._children(node, None)
            finally:
                self.depth -= 1

    def _assign(self, node: Node) -> None:
        """Read an assignment that is a statement of its own."""
        name, word, append = self._assignment(node)
        self.scope.assign(name, word, append=append)
        self.reviewer.review(Call([], text_of(node, self.source), {name: word}), self.scope)

    def _assignment(self, node: Node) -> tuple[str, Word, bool]:
        """Give the name and the value of an assignment, and whether it appends."""
        first, last = node.children[0], node.children[-1]
        if first.type == "subscript":
            self._expander().fields(first)
        name = text_of(first, self.source).split("[")[0]
        is_empty = last.type in ("=", "+=")
        word = Word("") if is_empty else self._expander().single(last)
        if _SUBSCRIPT_COMMAND.search(word.text):
            # Arithmetic looks into the value of a variable, and runs what stands in a subscript there.
            self.reviewer.report("hidden-command", text_of(node, self.source))
        return name, word, any(child.type == "+=" for child in node.children)

    def _declare(self, node: Node) -> Word:
        """Read `export`, `declare`, `unset` and their like: assignments, and words that may hold one."""
        call = Call([Word(text_of(node.children[0], self.source))], text_of(node, self.source))
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                name, word, append = self._assignment(child)
                self.scope.assign(name, word, append=append)
                call.assigned[name] = word
            elif child.type == "variable_name":
                call.argv.append(Word(text_of(child, self.source)))
            elif child.is_named and child.type in _WORDS:
                call.argv += self._expander().fields(child)
        for word in call.argv[1:]:
            name, equals, value = word.text.partition("=")
            if equals and name.isidentifier():
                call.assigned[name] = Word(value, word.taint)
                self.scope.assign(name, call.assigned[name])
        if any(word.text.startswith("-") and "n" in word.text for word in call.argv[1:]):
            # Such a name stands for another variable, not for its own value.
            for name, word in call.assigned.items():
                self.scope.assign(name, self.scope.value(word.text) if word.text.isidentifier() else UNKNOWN_WORD)
        return self.reviewer.review(call, self.scope)

    def _define(self, node: Node) -> None:
        """Remember a function, and report one that starts itself over and over."""
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None:
            self._children(node, None)
            return
        name = text_of(name_node, self.source)
        self.scope.functions[name] = self.uncalled[name] = Function(body, self.source)
        if _multiplies(body, name, self.source):
            self.reviewer.report("fork-bomb", text_of(node, self.source))

    def _check_flood(self, node: Node) -> None:
        """Ask about a loop that starts processes in the background and waits for none of them, or never ends."""
        if node.type not in _LOOPS or not _any(node, lambda below: below.type == "&" and below.parent.type in _STATEMENTS):
            return
        condition = node.child_by_field_name("condition")
        is_endless = condition is not None and text_of(condition, self.source).strip(" ;[]()") in _ALWAYS
        if is_endless or b"wait" not in self.source:
            self.reviewer.report("process-flood", text_of(node, self.source))

    def _loop(self, node: Node, stdin: Word | None) -> Word:
        """Read a `for` loop with its variable taking every value."""
        values = [child for child in node.children if child.type in _WORDS]
        words = [word for child in values for word in self._expander().fields(child)]
        variable = node.child_by_field_name("variable")
        if variable is not None:
            self.scope.offer(text_of(variable, self.source), words)
        with self._branch(True):
            body = [child for child in node.children if child.is_named and child not in values]
            return combine([self.walk(child, stdin) for child in body])

    def _redirected(self, node: Node, stdin: Word | None) -> Word:
        """Read a statement with redirections, and what follows on a here-document's first line."""
        redirects: list[Redirect] = []
        extra: list[Node] = []
        after: list[Node] = []
        body = None
        for child in node.children:
            if child.type in _REDIRECTS:
                stdin = self._redirect(child, redirects, extra, after) or stdin
            elif child.is_named and body is None:
                body = child
        output = self._redirected_body(node, body, stdin, redirects, extra)
        for child in after:
            output = self.walk(child, output if child.type == "pipeline" else None)
        return output

    def _redirected_body(
        self, node: Node, body: Node | None, stdin: Word | None, redirects: list[Redirect], extra: list[Node]
    ) -> Word:
        """Read the statement itself, knowing where its input and output go."""
        if body is not None and body.type == "command":
            return self._command(body, stdin, redirects, extra)
        if body is not None and body.type == "list":
            return self._redirected_list(node, body, stdin)
        self.reviewer.review_redirects(redirects, self.scope, text_of(node, self.source))
        output = self.walk(body, stdin) if body is not None else Word("")
        self.reviewer.review_written(redirects, output, self.scope, text_of(node, self.source))
        return output

    def _redirected_list(self, node: Node, body: Node, stdin: Word | None) -> Word:
        """Read `a && b > file`, where the grammar gives the redirection to both: what comes first has run by then."""
        *before, last = [child for child in body.children if child.is_named]
        redirects: list[Redirect] = []
        extra: list[Node] = []
        with self._uncertain(node):
            outputs = [self.walk(child, stdin) for child in before]
            for child in node.children:
                if child.type in _REDIRECTS:
                    stdin = self._redirect(child, redirects, extra, []) or stdin
            return combine([*outputs, self._redirected_body(node, last, stdin, redirects, extra)])

    def _redirect(self, node: Node, redirects: list[Redirect], extra: list[Node], after: list[Node]) -> Word | None:
        """Sort the parts of a redirection, and give what it puts on standard input."""
        if node.type == "herestring_redirect":
            return self._expander().single(node.children[-1])
        if node.type == "file_redirect":
            return self._file_redirect(node, redirects, extra)
        stdin = Word("")
        quoted = False
        for child in node.children:
            if child.type == "heredoc_start":
                quoted = text_of(child, self.source)[:1] in "'\"\\"
            elif child.type == "heredoc_body":
                stdin = Word(text_of(child, self.source)) if quoted else self._expander().body(child)
            elif child.type in _REDIRECTS:
                self._redirect(child, redirects, extra, after)
            elif child.type in _WORDS:
                extra.append(child)
            elif child.is_named and child.type != "heredoc_end":
                after.append(child)
        return stdin

    def _file_redirect(self, node: Node, redirects: list[Redirect], extra: list[Node]) -> Word | None:
        """Read a redirection to or from a file; words after the target are arguments of the command."""
        operator, targets = "", []
        for child in node.children:
            if child.type == "file_descriptor" or not child.is_named or child.type == "ERROR":
                operator += text_of(child, self.source)
            else:
                targets.append(child)
        if not targets:
            return None
        extra += targets[1:]
        target = self._expander().single(targets[0])
        redirects.append(Redirect(operator, target))
        if ">" in operator:
            return None
        written = self.scope.written(target.text)
        return written or Word(target.content if target.content is not None else UNKNOWN, target.taint)

    def _command(self, node: Node, stdin: Word | None, redirects: list[Redirect], extra: list[Node]) -> Word:
        """Read a simple command, once for every combination of values its variables may have."""
        outputs = []
        for choice in self._choices(node):
            self.scope.chosen = choice
            outputs.append(self._simple(node, stdin, list(redirects), extra))
        self.scope.chosen = {}
        return combine(list(dict.fromkeys(outputs)))

    def _choices(self, node: Node) -> Iterator[dict[str, Word]]:
        """Give the combinations of values to try for the variables a command mentions."""
        several = {name: values for name, values in self.scope.variables.items() if len(values) > 1}
        if not several:
            return iter([{}])
        text = text_of(node, self.source)
        named = {name: values for name, values in several.items() if name in text}
        if prod(len(values) for values in named.values()) > _MOST_CHOICES:
            self.reviewer.report("too-complex", text)
        combinations = product(*named.values())
        return (dict(zip(named, values, strict=True)) for values in islice(combinations, _MOST_CHOICES))

    def _simple(self, node: Node, stdin: Word | None, redirects: list[Redirect], extra: list[Node]) -> Word:
        """Build a simple command from its parts and hand it on."""
        call = Call([], text_of(node, self.source), {}, redirects, stdin)
        extra = list(extra)
        after: list[Node] = []
        for child, text in self._words(node.children):
            if text:
                call.argv += self._expander().joined(text)
            elif child.type == "variable_assignment":
                name, word, _ = self._assignment(child)
                call.assigned[name] = word
            elif child.type in _REDIRECTS:
                call.stdin = self._redirect(child, redirects, extra, after) or call.stdin
            elif child.type in _WORDS or child.type == "command_name":
                call.argv += self._expander().fields(child)
            elif child.is_named and child.type != "comment":
                self.walk(child, None)
        if b"<<" in self.source and _LOST_DASH.match(self.source, node.end_byte):
            call.argv.append(Word("-"))
        for child in extra:
            call.argv += self._expander().fields(child)
        return self.run(call)

    def _words(self, nodes: list[Node]) -> Iterator[tuple[Node, str | None]]:
        """Give a command's parts, and the text of those that are one word to the shell and two to the grammar."""
        waiting = list(nodes)
        while waiting:
            first = last = waiting.pop(0)
            while waiting and waiting[0].type == "word" and _is_cut(last, waiting[0], self.source):
                last = waiting.pop(0)
            text = self.source[first.start_byte : last.end_byte].decode("utf-8", "replace")
            yield first, text if last is not first else None

    def run(self, call: Call) -> Word:
        """Hand a command to the judge, or read the function or the alias it stands for."""
        name = call.argv[0].text if call.argv else ""
        function = self.scope.functions.get(name)
        if function is not None and name not in self.running:
            self.reviewer.review_redirects(call.redirects, self.scope, call.text)
            output = self.call_function(name, function, call, call.argv[1:])
            # Whether the function is there when the command runs can't be told: it may never have been defined, or be gone.
            return self.reviewer.review(call, self.scope) if self.reviewer.knows(name) else output
        alias = self.scope.aliases.get(name)
        if alias is not None:
            # A script uses its aliases only if it was told to, and a quoted name never does.
            self.reviewer.review(call.inner([*(Word(part) for part in _split(alias)), *call.argv[1:]]), self.scope)
            if not self.reviewer.knows(name):
                return Word(UNKNOWN)
        return self.reviewer.review(call, self.scope)

    def call_function(self, name: str, function: Function, call: Call, arguments: list[Word] | None) -> Word:
        """Read a function's body with the arguments it is called with, or with unknown ones."""
        self.uncalled.pop(name, None)
        outer, source = self.scope.positional, self.source
        self.scope.positional, self.source = arguments, function.source
        self.running.add(name)
        try:
            return self.walk(function.body, call.stdin)
        finally:
            self.running.discard(name)
            self.scope.positional, self.source = outer, source


def _split(text: str) -> list[str]:
    """Cut an alias into words, leaving it whole if its quotes do not match."""
    try:
        return shlex.split(text)
    except ValueError:
        return [text, UNKNOWN]


def _is_cut(first: Node, second: Node, source: bytes) -> bool:
    """Tell whether two nodes are one word, cut behind a `$`."""
    return bool(first.end_byte == second.start_byte) and text_of(first, source).endswith("$")


def _multiplies(body: Node, name: str, source: bytes) -> bool:
    """Tell whether a function starts itself in a pipeline or in the background."""
    calls_itself = _any(body, lambda node: node.type == "command_name" and text_of(node, source) == name)
    return calls_itself and _any(body, lambda node: node.type in ("pipeline", "&"))


def _any(node: Node, test: Callable[[Node], bool]) -> bool:
    """Tell whether a node or one below it passes a test."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if test(current):
            return True
        waiting.extend(current.children)
    return False


__all__ = ["UNKNOWN_WORD", "Reader", "Reviewer", "TooComplex", "combine"]
