"""Reading of a parsed script in the order it would run, handing every simple command to a judge."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING

from decklog.guard.policy.parse import DEEPEST, Expander, Node, TooComplex, text_of
from decklog.guard.policy.scope import Function, Scope
from decklog.guard.policy.use import Call, Redirect
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, UNKNOWN_WORD, Word, combine, split_words

if TYPE_CHECKING:
    from decklog.guard.policy.engine import Judging

_MOST_CHOICES = 64
_REDIRECTS = {"file_redirect", "herestring_redirect", "heredoc_redirect"}
_SKIPPED = {"comment", "heredoc_start", "heredoc_end", "file_descriptor", "variable_name"}
_STATEMENTS = {"do_group", "program", "list", "compound_statement", "subshell"}
_ALWAYS = {":", "true", "1", "1 -eq 1", "1 = 1", ""}
_LOOPS = {"for_statement", "while_statement", "c_style_for_statement"}
_BRANCHING = {*_LOOPS, "if_statement", "case_statement"}
_WORDS = {
    "word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "simple_expansion",
    "expansion", "number", "command_substitution", "process_substitution", "arithmetic_expansion",
    "brace_expression", "extglob_pattern", "regex", "array", "subscript",
}  # fmt: skip
# The grammar leaves out a lone dash right before a here-document.
_LOST_DASH = re.compile(rb"[ \t]+-[ \t]*<<(?!<)")
_SUBSCRIPT_COMMAND = r"\w\[[^\]]*(?:\$\(|`)"


class Redirections:
    """The redirections of a statement: standard input, files, further arguments, statements that follow."""

    def __init__(self, stdin: Word | None = None) -> None:
        self.stdin = stdin
        self.files: list[Redirect] = []
        self.extra: list[Node] = []
        self.after: list[Node] = []


class Reader:
    """Walk one script."""

    def __init__(self, source: bytes, scope: Scope, judge: "Judging", depth: int = 0) -> None:
        self.source = source
        self.scope = scope
        self.judge = judge
        self.depth = depth
        self.uncalled: dict[str, Function] = {}
        self.running: set[str] = set()

    def read(self, root: Node, stdin: Word | None = None) -> Word:
        """Read a whole script, then the functions it defines and never calls."""
        output = self.walk(root, stdin)
        while self.scope.later:
            self.judge.run_script(self.scope.later.pop(), self.scope)
        for name, function in list(self.uncalled.items()):
            self._call_function(name, function, Call([Word(name)], name), None)
        return output

    def walk(self, node: Node, stdin: Word | None) -> Word:
        """Read one statement and return its output."""
        self.judge.spend()
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooComplex
        try:
            return self._statement(node, stdin)
        finally:
            self.depth -= 1

    def _statement(self, node: Node, stdin: Word | None) -> Word:
        match node.type:
            case "command":
                return self._command(node, Redirections(stdin))
            case "pipeline":
                return self._pipeline(node, stdin)
            case "redirected_statement":
                return self._redirected(node, stdin)
            case "subshell":
                with self._inner_scope():
                    return self._children(node, stdin)
            case "variable_assignment":
                name, word, append = self._assignment(node)
                self.scope.assign(name, word, append=append)
                self.judge.review(Call([], self._text(node), {name: word}), self.scope)
            case "declaration_command" | "unset_command":
                return self._declare(node)
            case "function_definition":
                self._define(node)
            case "test_command" if re.search(_SUBSCRIPT_COMMAND, self._text(node)):
                self.judge.report(Event.SUBSCRIPT_COMMAND, self._text(node))
                return self._children(node, stdin)
            case "for_statement":
                return self._loop(node, stdin)
            case kind if kind in _WORDS or kind == "command_name":
                self._expander().fields(node)
            case kind if kind in _REDIRECTS:
                # A redirection alone, as in `$(<file)`, gives what the file holds.
                return self._redirected_body(node, None, self._redirections([node], None))
            case "list":
                with self._uncertain(node):
                    return self._children(node, stdin)
            case kind if kind not in _SKIPPED:
                self._check_flood(node)
                with self._branch(kind in _BRANCHING):
                    return self._children(node, stdin)
        return Word("")

    def _text(self, node: Node) -> str:
        return text_of(node, self.source)

    def _children(self, node: Node, stdin: Word | None) -> Word:
        """Read the statements below a node, one after the other."""
        outputs = [self.walk(child, stdin) for child in node.children if child.is_named]
        return combine([word for word in outputs if word.text or word.taint] or [Word("")])

    def _pipeline(self, node: Node, stdin: Word | None) -> Word:
        """Read a pipeline, each command's output going into the next."""
        output = stdin
        for child in node.children:
            if child.is_named and child.type != "comment":
                output = self.walk(child, output)
        return output or Word("")

    @contextmanager
    def _inner_scope(self) -> Iterator[None]:
        outer, self.scope = self.scope, self.scope.inner()
        try:
            yield
        finally:
            self.scope = outer

    @contextmanager
    def _uncertain(self, node: Node) -> Iterator[None]:
        """Read `a && b`: after the list it is not known whether b has run."""
        made = set(self.scope.made)
        yield
        if node.parent is None or node.parent.type != "list":
            self.scope.made.intersection_update(made)

    @contextmanager
    def _branch(self, conditional: bool) -> Iterator[None]:
        self.scope.conditional += conditional
        try:
            yield
        finally:
            self.scope.conditional -= conditional

    def _expander(self) -> Expander:
        return Expander(self.source, self.scope, self._substitute, lambda text: self.judge.run_script(text, self.scope))

    def _substitute(self, node: Node) -> Word:
        """Read the commands of a substitution in their own scope."""
        with self._inner_scope():
            return self._children(node, None)

    def _assignment(self, node: Node) -> tuple[str, Word, bool]:
        """Return the name and value of an assignment, and whether it appends."""
        first, last = node.children[0], node.children[-1]
        if first.type == "subscript":
            self._expander().fields(first)
        word = Word("") if last.type in ("=", "+=") else self._expander().single(last)
        if re.search(_SUBSCRIPT_COMMAND, word.text):
            # Arithmetic expands the value of a variable, and runs commands in its subscripts.
            self.judge.report(Event.SUBSCRIPT_COMMAND, self._text(node))
        return self._text(first).split("[")[0], word, any(child.type == "+=" for child in node.children)

    def _declare(self, node: Node) -> Word:
        """Read `export`, `declare` or `unset`: assignments, and words that may hold one."""
        call = Call([Word(self._text(node.children[0]))], self._text(node))
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                name, word, append = self._assignment(child)
                self.scope.assign(name, word, append=append)
                call.assigned[name] = word
            elif child.type == "variable_name":
                call.argv.append(Word(self._text(child)))
            elif child.type in _WORDS:
                call.argv += self._expander().fields(child)
        for word in call.argv[1:]:
            name, equals, value = word.text.partition("=")
            if equals and name.isidentifier():
                call.assigned[name] = Word(value, word.taint)
                self.scope.assign(name, call.assigned[name])
        if any(word.text.startswith("-") and "n" in word.text for word in call.argv[1:]):
            # A name reference is an alias of another variable.
            for name, word in call.assigned.items():
                self.scope.assign(name, self.scope.value(word.text) if word.text.isidentifier() else UNKNOWN_WORD)
        return self.judge.review(call, self.scope)

    def _define(self, node: Node) -> None:
        """Remember a function, and report one that starts itself without end."""
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None:
            self._children(node, None)
            return
        name = self._text(name_node)
        self.scope.functions[name] = self.uncalled[name] = Function(body, self.source)
        calls_itself = _any(body, lambda below: below.type == "command_name" and self._text(below) == name)
        if calls_itself and _any(body, lambda below: below.type in ("pipeline", "&")):
            self.judge.report(Event.FORK_BOMB, self._text(node))

    def _check_flood(self, node: Node) -> None:
        """Report a loop that starts background processes and waits for none of them, or never ends."""
        if node.type not in _LOOPS or not _any(node, lambda below: below.type == "&" and below.parent.type in _STATEMENTS):
            return
        condition = node.child_by_field_name("condition")
        is_endless = condition is not None and self._text(condition).strip(" ;[]()") in _ALWAYS
        if is_endless or b"wait" not in self.source:
            self.judge.report(Event.PROCESS_FLOOD, self._text(node))

    def _loop(self, node: Node, stdin: Word | None) -> Word:
        """Read a `for` loop with its variable taking every value."""
        self._check_flood(node)
        values = [child for child in node.children if child.type in _WORDS]
        words = [word for child in values for word in self._expander().fields(child)]
        variable = node.child_by_field_name("variable")
        if variable is not None:
            self.scope.offer(self._text(variable), words)
        with self._branch(True):
            body = [child for child in node.children if child.is_named and child not in values]
            return combine([self.walk(child, stdin) for child in body] or [Word("")])

    def _redirections(self, nodes: list[Node], stdin: Word | None) -> Redirections:
        """Read the redirections among some nodes."""
        given = Redirections(stdin)
        for child in nodes:
            if child.type in _REDIRECTS:
                self._redirect(child, given)
        return given

    def _redirected(self, node: Node, stdin: Word | None) -> Word:
        """Read a statement with redirections, and what follows on a here-document's first line."""
        body = next((child for child in node.children if child.is_named and child.type not in _REDIRECTS), None)
        if body is None or body.type != "list":
            return self._redirected_body(node, body, self._redirections(node.children, stdin))
        # In `a && b > file` the grammar gives the redirection to both.
        *before, body = [child for child in body.children if child.is_named]
        with self._uncertain(node):
            outputs = [self.walk(child, stdin) for child in before]
            return combine([*outputs, self._redirected_body(node, body, self._redirections(node.children, stdin))])

    def _redirected_body(self, node: Node, body: Node | None, given: Redirections) -> Word:
        """Read the statement itself, with its input and output redirected."""
        if body is not None and body.type == "command":
            output = self._command(body, given)
        else:
            self.judge.review_redirects(given.files, self.scope, self._text(node))
            output = self.walk(body, given.stdin) if body is not None else Word("")
            self.judge.review_written(given.files, output, self.scope, self._text(node))
            output = output if body is not None else given.stdin or Word("")
        for child in given.after:
            output = self.walk(child, output if child.type == "pipeline" else None)
        return output

    def _redirect(self, node: Node, given: Redirections) -> None:
        """Sort the parts of a redirection, and note what it puts on standard input."""
        if node.type == "herestring_redirect":
            given.stdin = self._expander().single(node.children[-1])
        elif node.type == "file_redirect":
            self._file_redirect(node, given)
        else:
            self._heredoc(node, given)

    def _heredoc(self, node: Node, given: Redirections) -> None:
        stdin, quoted = Word(""), False
        for child in node.children:
            if child.type == "heredoc_start":
                quoted = self._text(child)[:1] in "'\"\\"
            elif child.type == "heredoc_body":
                stdin = Word(self._text(child)) if quoted else self._expander().body(child)
            elif child.type in _REDIRECTS:
                self._redirect(child, given)
            elif child.type in _WORDS:
                given.extra.append(child)
            elif child.is_named and child.type != "heredoc_end":
                given.after.append(child)
        given.stdin = stdin

    def _file_redirect(self, node: Node, given: Redirections) -> None:
        """Read a redirection to or from a file; further words are arguments of the command."""
        operator, targets = "", []
        for child in node.children:
            if child.type in ("file_descriptor", "ERROR") or not child.is_named:
                operator += self._text(child)
            else:
                targets.append(child)
        if not targets:
            return
        given.extra.extend(targets[1:])
        target = self._expander().single(targets[0])
        given.files.append(Redirect(operator, target))
        if ">" not in operator:
            content = UNKNOWN if target.content is None else target.content
            given.stdin = self.scope.written(target.text) or Word(content, target.taint)

    def _command(self, node: Node, given: Redirections) -> Word:
        """Read a simple command, once for every combination of values its variables may have."""
        outputs = []
        for choice in self._choices(node):
            self.scope.chosen = choice
            outputs.append(self._simple(node, given))
        self.scope.chosen = {}
        return combine(list(dict.fromkeys(outputs)))

    def _choices(self, node: Node) -> Iterator[dict[str, Word]]:
        """Yield the combinations of values for the variables a command mentions."""
        text = self._text(node)
        named = {name: values for name, values in self.scope.variables.items() if len(values) > 1 and name in text}
        if prod(len(values) for values in named.values()) > _MOST_CHOICES:
            self.judge.report(Event.TOO_COMPLEX, text)
        for values in islice(product(*named.values()), _MOST_CHOICES):
            yield dict(zip(named, values, strict=True))

    def _simple(self, node: Node, outer: Redirections) -> Word:
        """Build a simple command from its parts and judge it."""
        call, given = Call([], self._text(node)), Redirections(outer.stdin)
        given.files, given.extra = [*outer.files], [*outer.extra]
        waiting = list(node.children)
        while waiting:
            child = last = waiting.pop(0)
            # The grammar splits a word behind a `$`.
            while waiting and waiting[0].type == "word" and self._joins(last, waiting[0]):
                last = waiting.pop(0)
            if last is not child:
                call.argv += self._expander().joined(self.source[child.start_byte : last.end_byte].decode("utf-8", "replace"))
            elif child.type == "variable_assignment":
                name, word, _ = self._assignment(child)
                call.assigned[name] = word
            elif child.type in _REDIRECTS:
                self._redirect(child, given)
            elif child.type in _WORDS or child.type == "command_name":
                call.argv += self._expander().fields(child)
            elif child.is_named and child.type != "comment":
                self.walk(child, None)
        if b"<<" in self.source and _LOST_DASH.match(self.source, node.end_byte):
            call.argv.append(Word("-"))
        for child in given.extra:
            call.argv += self._expander().fields(child)
        call.stdin, call.redirects = given.stdin, given.files
        return self._run(call)

    def _joins(self, first: Node, second: Node) -> bool:
        return bool(first.end_byte == second.start_byte) and self._text(first).endswith("$")

    def _run(self, call: Call) -> Word:
        """Judge a command, and the function or alias of its name."""
        name = call.argv[0].text if call.argv else ""
        function = self.scope.functions.get(name)
        if function is not None and name not in self.running:
            self.judge.review_redirects(call.redirects, self.scope, call.text)
            output = self._call_function(name, function, call, call.argv[1:])
            # The function may be gone, or may never have been defined, when the command runs.
            return self.judge.review(call, self.scope) if self.judge.policy.knows(name) else output
        alias = self.scope.aliases.get(name)
        if alias is not None:
            # A script expands aliases only with expand_aliases, and never for a quoted name.
            self.judge.review(call.inner([*(Word(part) for part in split_words(alias)), *call.argv[1:]]), self.scope)
            if not self.judge.policy.knows(name):
                return Word(UNKNOWN)
        return self.judge.review(call, self.scope)

    def _call_function(self, name: str, function: Function, call: Call, arguments: list[Word] | None) -> Word:
        """Read a function's body with the arguments of the call, or with unknown ones."""
        self.uncalled.pop(name, None)
        outer, source = self.scope.positional, self.source
        self.scope.positional, self.source = arguments, function.source
        self.running.add(name)
        try:
            return self.walk(function.body, call.stdin)
        finally:
            self.running.discard(name)
            self.scope.positional, self.source = outer, source


def _any(node: Node, test: Callable[[Node], bool]) -> bool:
    """Return whether a node or one below it passes a test."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if test(current):
            return True
        waiting.extend(current.children)
    return False
