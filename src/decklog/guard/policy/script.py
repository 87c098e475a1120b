"""Reading of a parsed script in the order it would run, judging every simple command."""

import re
from collections.abc import Callable
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING

from decklog.guard.policy.parse import DEEPEST, Expander, Node, TooComplex
from decklog.guard.policy.scope import Call, Function, Redirect
from decklog.guard.policy.verdict import Event
from decklog.guard.policy.words import UNKNOWN, UNKNOWN_WORD, Word, combine, split_words

if TYPE_CHECKING:
    from decklog.guard.policy.engine import CommandCheck

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
_SUBSCRIPT_COMMAND = re.compile(r"\w\[[^\]]*(?:\$\(|`)")


class Reader:
    """Walk one script. An exception ends the whole judgement, so nothing is restored after one."""

    def __init__(self, source: bytes, command: "CommandCheck", depth: int) -> None:
        self.source = source
        self.command = command
        self.scope = command.scope
        self.depth = depth
        self.uncalled: dict[str, Function] = {}
        self.running: set[str] = set()

    def read(self, root: Node, stdin: Word | None = None) -> Word:
        """Read a whole script, then the functions it defines and never calls."""
        output = self.walk(root, stdin)
        while self.scope.deferred_commands:
            self.run_script(self.scope.deferred_commands.pop())
        for name, function in list(self.uncalled.items()):
            self._call_function(name, function, None, None)
        return output

    def run_script(self, text: str) -> Word:
        """Judge another script in the present scope."""
        return self.command.for_call(self.command.call, self.scope).run_script(text)

    def _report(self, event: Event, node: Node) -> None:
        self.command.report(event, self.text(node))

    def walk(self, node: Node, stdin: Word | None) -> Word:
        """Read one statement and return its output."""
        self.command.judgement.spend()
        self.depth += 1
        if self.depth > DEEPEST:
            raise TooComplex
        output = self._statement(node, stdin)
        self.depth -= 1
        return output

    def _statement(self, node: Node, stdin: Word | None) -> Word:
        match node.type:
            case "command":
                return self._command(node, Call([], "", stdin=stdin))
            case "pipeline":
                for child in node.children:
                    if child.is_named and child.type != "comment":
                        stdin = self.walk(child, stdin)
                return stdin or Word("")
            case "redirected_statement":
                return self._redirected(node, stdin)
            case "subshell":
                return self.in_subshell(node, stdin)
            case "variable_assignment":
                name, word, append = self._assignment(node)
                self.scope.assign(name, word, append=append)
                self.command.for_call(Call([], self.text(node), {name: word}), self.scope).review()
            case "declaration_command" | "unset_command":
                return self._declare(node)
            case "function_definition":
                self._define(node)
            case "test_command" if _SUBSCRIPT_COMMAND.search(self.text(node)):
                self._report(Event.SUBSCRIPT_COMMAND, node)
                return self._children(node, stdin)
            case kind if kind in _WORDS or kind == "command_name":
                Expander(self).fields(node)
            case kind if kind in _REDIRECTS:
                # A redirection alone, as in `$(<file)`, gives what the file holds.
                return self._redirected_body(node, None, self._redirections([node], None))
            case "list":
                made = set(self.scope.created)
                output = self._children(node, stdin)
                self._keep_certain(node, made)
                return output
            case kind if kind not in _SKIPPED:
                return self._compound(node, stdin)
        return Word("")

    def _compound(self, node: Node, stdin: Word | None) -> Word:
        """Read a loop, a branch or another statement that holds statements."""
        if node.type in _LOOPS:
            self._check_flood(node)
        variable = node.child_by_field_name("variable")
        if variable is not None:
            # The variable of a loop takes every value.
            values = [child for child in node.children if child.type in _WORDS]
            self.scope.assign_any(self.text(variable), [word for child in values for word in Expander(self).fields(child)])
        self.scope.conditional += node.type in _BRANCHING
        output = self._children(node, stdin)
        self.scope.conditional -= node.type in _BRANCHING
        return output

    def text(self, node: Node) -> str:
        """Return a node's text."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _children(self, node: Node, stdin: Word | None) -> Word:
        """Read the statements below a node, one after the other."""
        outputs = [self.walk(child, stdin) for child in node.children if child.is_named]
        return combine([word for word in outputs if word.text or word.taint] or [Word("")])

    def in_subshell(self, node: Node, stdin: Word | None = None) -> Word:
        """Read the commands below a node in their own scope."""
        outer, self.scope = self.scope, self.scope.inner()
        output = self._children(node, stdin)
        self.scope = outer
        return output

    def _keep_certain(self, node: Node, made: set[str]) -> None:
        """Forget files made by `a && b`: after the list it is not known whether b has run."""
        if node.parent is None or node.parent.type != "list":
            self.scope.created.intersection_update(made)

    def _assignment(self, node: Node) -> tuple[str, Word, bool]:
        """Return the name and value of an assignment, and whether it appends."""
        first, last = node.children[0], node.children[-1]
        if first.type == "subscript":
            Expander(self).fields(first)
        word = Word("") if last.type in ("=", "+=") else Expander(self).single(last)
        if _SUBSCRIPT_COMMAND.search(word.text):
            # Arithmetic expands the value of a variable, and runs commands in its subscripts.
            self._report(Event.SUBSCRIPT_COMMAND, node)
        return self.text(first).split("[")[0], word, any(child.type == "+=" for child in node.children)

    def _declare(self, node: Node) -> Word:
        """Read `export`, `declare` or `unset`: assignments, and words that may hold one."""
        call = Call([Word(self.text(node.children[0]))], self.text(node))
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                name, word, append = self._assignment(child)
                self.scope.assign(name, word, append=append)
                call.assigned[name] = word
            elif child.type == "variable_name":
                call.argv.append(Word(self.text(child)))
            elif child.type in _WORDS:
                call.argv += Expander(self).fields(child)
        for word in call.argv[1:]:
            name, equals, value = word.text.partition("=")
            if equals and name.isidentifier():
                call.assigned[name] = Word(value, word.taint)
                self.scope.assign(name, call.assigned[name])
        if any(word.text.startswith("-") and "n" in word.text for word in call.argv[1:]):
            # A name reference is an alias of another variable.
            for name, word in call.assigned.items():
                self.scope.assign(name, self.scope.value(word.text) if word.text.isidentifier() else UNKNOWN_WORD)
        return self.command.for_call(call, self.scope).review()

    def _define(self, node: Node) -> None:
        """Remember a function, and report one that starts itself without end."""
        name_node, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name_node is None or body is None:
            self._children(node, None)
            return
        name = self.text(name_node)
        self.scope.functions[name] = self.uncalled[name] = body, self.source
        calls_itself = _any(body, lambda below: below.type == "command_name" and self.text(below) == name)
        if calls_itself and _any(body, lambda below: below.type in ("pipeline", "&")):
            self._report(Event.FORK_BOMB, node)

    def _check_flood(self, node: Node) -> None:
        """Report a loop that starts background processes and waits for none of them, or never ends."""
        if not _any(node, lambda below: below.type == "&" and below.parent.type in _STATEMENTS):
            return
        condition = node.child_by_field_name("condition")
        is_endless = condition is not None and self.text(condition).strip(" ;[]()") in _ALWAYS
        if is_endless or b"wait" not in self.source:
            self._report(Event.PROCESS_FLOOD, node)

    # Redirections

    def _redirections(self, nodes: list[Node], stdin: Word | None) -> Call:
        """Read the redirections among some nodes."""
        given = Call([], "", stdin=stdin)
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
        made = set(self.scope.created)
        outputs = [self.walk(child, stdin) for child in before]
        output = combine([*outputs, self._redirected_body(node, body, self._redirections(node.children, stdin))])
        self._keep_certain(node, made)
        return output

    def _redirected_body(self, node: Node, body: Node | None, given: Call) -> Word:
        """Read the statement itself, with its input and output redirected."""
        if body is not None and body.type == "command":
            output = self._command(body, given)
        else:
            given.text = self.text(node)
            command = self.command.for_call(given, self.scope)
            command.check_redirects()
            output = self.walk(body, given.stdin) if body is not None else Word("")
            command.check_written_files(output)
            output = output if body is not None else given.stdin or Word("")
        for child in given.after:
            output = self.walk(child, output if child.type == "pipeline" else None)
        return output

    def _redirect(self, node: Node, given: Call) -> None:
        """Sort the parts of a redirection, and note what it puts on standard input."""
        if node.type == "herestring_redirect":
            given.stdin = Expander(self).single(node.children[-1])
            return
        if node.type == "file_redirect":
            self._file_redirect(node, given)
            return
        stdin, quoted = Word(""), False
        for child in node.children:
            if child.type == "heredoc_start":
                quoted = self.text(child)[:1] in "'\"\\"
            elif child.type == "heredoc_body":
                stdin = Word(self.text(child)) if quoted else Expander(self).body(child)
            elif child.type in _REDIRECTS:
                self._redirect(child, given)
            elif child.type in _WORDS:
                given.extra.append(child)
            elif child.is_named and child.type != "heredoc_end":
                given.after.append(child)
        given.stdin = stdin

    def _file_redirect(self, node: Node, given: Call) -> None:
        """Read a redirection to or from a file; further words are arguments of the command."""
        operator, targets = "", []
        for child in node.children:
            if child.type in ("file_descriptor", "ERROR") or not child.is_named:
                operator += self.text(child)
            else:
                targets.append(child)
        if not targets:
            return
        given.extra.extend(targets[1:])
        target = Expander(self).single(targets[0])
        given.redirects.append(Redirect(operator, target))
        if ">" not in operator:
            content = UNKNOWN if target.content is None else target.content
            given.stdin = self.scope.find_written_content(target.text) or Word(content, target.taint)

    # Simple commands

    def _command(self, node: Node, given: Call) -> Word:
        """Read a simple command, once for every combination of values its variables may have."""
        text, outputs = self.text(node), []
        named = {name: values for name, values in self.scope.variables.items() if len(values) > 1 and name in text}
        if prod(len(values) for values in named.values()) > _MOST_CHOICES:
            self._report(Event.TOO_COMPLEX, node)
        for values in islice(product(*named.values()), _MOST_CHOICES):
            self.scope.fixed_values = dict(zip(named, values, strict=True))
            outputs.append(self._simple(node, given))
        self.scope.fixed_values = {}
        return combine(list(dict.fromkeys(outputs)))

    def _simple(self, node: Node, outer: Call) -> Word:
        """Build a simple command from its parts and judge it."""
        call = Call([], self.text(node), stdin=outer.stdin)
        call.redirects, call.extra = [*outer.redirects], [*outer.extra]
        waiting = list(node.children)
        while waiting:
            child = last = waiting.pop(0)
            # The grammar splits a word behind a `$`.
            while waiting and waiting[0].type == "word" and self.text(last).endswith("$"):
                if last.end_byte != waiting[0].start_byte:
                    break
                last = waiting.pop(0)
            if last is not child:
                call.argv += Expander(self).joined(self.source[child.start_byte : last.end_byte].decode("utf-8", "replace"))
            elif child.type == "variable_assignment":
                name, word, _ = self._assignment(child)
                call.assigned[name] = word
            elif child.type in _REDIRECTS:
                self._redirect(child, call)
            elif child.type in _WORDS or child.type == "command_name":
                call.argv += Expander(self).fields(child)
            elif child.is_named and child.type != "comment":
                self.walk(child, None)
        if b"<<" in self.source and _LOST_DASH.match(self.source, node.end_byte):
            call.argv.append(Word("-"))
        for child in call.extra:
            call.argv += Expander(self).fields(child)
        return self._run(call)

    def _run(self, call: Call) -> Word:
        """Judge a command, and the function or alias of its name."""
        name, command = call.argv[0].text if call.argv else "", self.command.for_call(call, self.scope)
        function = self.scope.functions.get(name)
        if function is not None and name not in self.running:
            command.check_redirects()
            output = self._call_function(name, function, call.stdin, call.argv[1:])
            # The function may be gone, or may never have been defined, when the command runs.
            return command.review() if command.policy.has_program(name) else output
        alias = self.scope.aliases.get(name)
        if alias is not None:
            # A script expands aliases only with expand_aliases, and never for a quoted name.
            command.run([*(Word(part) for part in split_words(alias)), *call.argv[1:]])
            if not command.policy.has_program(name):
                return Word(UNKNOWN)
        return command.review()

    def _call_function(self, name: str, function: Function, stdin: Word | None, arguments: list[Word] | None) -> Word:
        """Read a function's body with the arguments of the call, or with unknown ones."""
        self.uncalled.pop(name, None)
        outer = self.scope.positional, self.source
        body, self.source = function
        self.scope.positional = arguments
        self.running.add(name)
        output = self.walk(body, stdin)
        self.running.discard(name)
        self.scope.positional, self.source = outer
        return output


def _any(node: Node, test: Callable[[Node], bool]) -> bool:
    """Return whether a node or one below it passes a test."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if test(current):
            return True
        waiting.extend(current.children)
    return False
