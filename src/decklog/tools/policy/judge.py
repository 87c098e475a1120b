"""The one question asked of a policy: may this command run?"""

import shlex

from decklog.errors import Invalid
from decklog.tools.policy.policy import Policy
from decklog.tools.policy.programs.judging import Judging
from decklog.tools.policy.shell.parse import LONGEST
from decklog.tools.policy.shell.script import TooComplex
from decklog.tools.policy.shell.simple_command import Call
from decklog.tools.policy.shell.words import Word
from decklog.tools.policy.verdict import Verdict


def judge(command: str | list[str], policy: Policy | None = None, *, root: str | None = None) -> Verdict:
    """Judge a command before it runs: a bash command line, or a list of arguments that runs without a shell.

    `root` is the absolute path of the repository; without it, relative paths are taken for the repository's.
    Nothing is executed and no file is looked at. Any text gets a verdict; only an empty list or
    another type is refused.
    """
    text = _text(command)
    judging = Judging(policy or Policy.default(), root, text)
    if "\0" in text or "\ufffd" in text.encode("utf-8", "replace").decode("utf-8"):
        judging.report("not-understood", text[:200])
    try:
        if len(text) > LONGEST:
            raise TooComplex
        if isinstance(command, str):
            output = judging.run_script(text.replace("\0", ""), judging.scope())
        else:
            call = Call([Word(part.replace("\0", "")) for part in command], text)
            output = judging.review(call, judging.scope())
        judging.judge_output(output, text)
    except (TooComplex, RecursionError):
        judging.report("too-complex", text[:200])
    return judging.verdict


def _text(command: str | list[str]) -> str:
    """Give a command as one line, refusing what is neither text nor a list of it."""
    if isinstance(command, str):
        return command
    if not isinstance(command, list) or not all(isinstance(part, str) for part in command):
        hint = "Pass a command line as text, or a list of argument texts."
        raise Invalid(f"A command is text or a list of text, not {type(command).__name__}.", hint=hint)
    if not command:
        raise Invalid("The list of arguments is empty, so there is nothing to judging.", hint="Pass at least a program.")
    return shlex.join(command)
