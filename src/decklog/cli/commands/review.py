"""`decklog review` runs the review gate or one of its stages; `decklog prompt` shows prompts of models."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from decklog.agents.prime import Prime
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import SuggestingGroup
from decklog.cli.show import show
from decklog.cli.terminal import escape_for_terminal, print_text
from decklog.conductor.git.repository import Repository, starting_commit
from decklog.core.errors import NotFound
from decklog.log import Decklog
from decklog.models.composer import ComposedPrompt, Composer, known_sites, read_settings
from decklog.review.agent_tool import markdown, sarif
from decklog.review.change import Change, worktree_change
from decklog.review.gate import find_change, run_stage
from decklog.review.gate import review as run_gate
from decklog.review.publishing import request_override
from decklog.review.result import StageResult

if TYPE_CHECKING:
    from decklog import Review


_EXITS = {"pass": 0, "request-changes": 1, "block": 6, "unproven": 7}
_STAGE_EXITS = {"pass": 0, "skipped": 0, "fail": 6, "unproven": 7}
_STAGES = {
    "static": "checks without tests, linters, and rules about changed lines",
    "functional": "its tests and those of the base, and whether new tests fail without it",
    "architectural": "missing tests and documents, and a model's view of its structure",
    "security": "added secrets, dangerous calls and dependencies",
    "prose": "the form of its messages",
    "adversarial": "faults found by a model that did not write it",
    "feedback-binding": "whether it answers its feedback and a test proves it",
}
_FORMS = ("text", "markdown", "sarif")


class _ReviewGroup(click.Group):
    """A group that accepts a change in place of a command, and reviews it with the whole gate."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = next(iter(args), "")
        return super().parse_args(ctx, args if first in {*self.commands, "-h", "--help"} else ["change", *args])


@click.group(cls=_ReviewGroup, subcommand_metavar="[BASE..HEAD | COMMAND] …")
def review() -> None:
    """Review a change in seven stages: pass, request-changes, block or unproven (exit 0, 1, 6, 7).

    \b
    decklog review                  what HEAD has beyond the published branch
    decklog review main..feature    this change
    decklog review --worktree       the files as they are
    decklog review security         one stage alone
    decklog review ask              ask a person to let a blocked change pass

    The settings come from decklog.toml in the commit that the change starts from. Reviews are kept: decklog reviews find
    """


def _change_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name a change."""
    options = (
        click.argument("words", metavar="[BASE..HEAD]", required=False),
        click.option("--worktree", is_flag=True, help="the files as they are, also those that are not committed"),
        click.option(
            "--base", metavar="COMMIT", default="", help="what it is published against, default: base of [review], or main"
        ),
        click.option("--feedback", "feedback_id", metavar="ID", help="the feedback that it answers"),
        click.option("--mending", is_flag=True, help="it is a fix, so it needs the feedback that it answers"),
    )
    for option in reversed(options):
        command = option(command)
    return command


@review.command("change")
@_change_options
@click.option("--again", is_flag=True, help="review it again, even if there is a verdict")
@click.option("--format", "form", type=click.Choice(_FORMS), default="text", help="default text")
@click.option("--out", metavar="FILE", help="write it to a file")
@click.pass_obj
def change_(call: Invocation, /, words: str | None, worktree: bool, base: str, form: str, out: str | None, **given: Any) -> int:
    """Review a change; a final review of exactly it is shown again."""
    if out is not None and form == "text" and not call.json:
        raise WrongUsage("--out needs a format", hint="Add --format markdown, --format sarif or --json")
    given["is_fix"] = given.pop("mending")
    change = _find_change(words, worktree, base)
    is_shown = form == "text" and not call.json
    with call.open() as log:
        found = run_gate(log, change, on_stage=lambda one: print_text(_stage_text(one)) if is_shown else None, **given)
    _write(call, found, form, out)
    return _EXITS[found.verdict.value]


def _stage_command(name: str, number: int) -> click.Command:
    """Build the command of one stage."""

    @_change_options
    @click.pass_obj
    def run(call: Invocation, words: str | None, worktree: bool, base: str, feedback_id: str | None, mending: bool) -> int:
        change = _find_change(words, worktree, base)
        with call.open() as log:
            result = run_stage(log, change, number, feedback_id=feedback_id, is_fix=mending)
        show(result, as_json=call.json, text=_stage_text(result))
        return _STAGE_EXITS[result.status.value]

    text = f"Run stage {number} alone: {_STAGES[name]}. It makes no verdict."
    return click.command(name, help=text)(run)


for _number, _name in enumerate(_STAGES, 1):
    review.add_command(_stage_command(_name, _number))


@review.command("ask")
@click.argument("name", metavar="[REVIEW | FEEDBACK]", required=False)
@click.option("--by", metavar="NAME", default="agent", help="who asks, default agent")
@click.pass_obj
def ask(call: Invocation, name: str | None, by: str) -> int:
    """Ask a person to let exactly this change pass although the gate blocks it; a yes needs a reason.

    Name a review, or the feedback that it answers; without either it is what HEAD has beyond the published branch.

    decklog approvals decide ID granted --by NAME --rationale WHY
    """
    with call.open() as log:
        asked = request_override(log, _find_review(log, name), by=by)
    if not call.json:
        click.echo(f"A person answers: decklog approvals decide {asked} granted --by NAME --rationale WHY", err=True)
    return show({"approval_id": asked}, as_json=call.json, text=asked)


def _find_review(log: Decklog, name: str | None) -> "Review":
    """Return a review by its id or its feedback, or the latest review of HEAD."""
    if name is None:
        change = _find_change(None, worktree=False, base="")
        found = log.reviews.latest(change.tree, change.patch)
    else:
        try:
            return log.reviews.get(name)
        except NotFound:
            found = next(iter(log.reviews.find(feedback_id=name, limit=1)), None)
    if found is None:
        what = f"there is no review {name}, and none of an answer to feedback {name}" if name else "HEAD was not reviewed"
        raise NotFound(what, hint="See what was reviewed: decklog reviews find; to have it reviewed: decklog review", name=name)
    return found


def _find_change(words: str | None, worktree: bool, base: str) -> Change:
    if worktree and words:
        raise WrongUsage("give either BASE..HEAD or --worktree, not both")
    repository = Repository.here()
    if worktree:
        return worktree_change(repository, base=base)
    return find_change(repository, words, base=base)


def _stage_text(result: StageResult) -> str:
    """Describe the result of a stage and its findings."""
    lines = [f"{result.number} {result.name:16} {result.status}{f': {result.why}' if result.why else ''}"]
    for one in result.findings:
        if one.severity.value != "info":
            where = ":".join(str(part) for part in (one.file, one.line) if part)
            lines.append(f"    {one.severity}: {f'{where}: ' if where else ''}{one.text} [{one.kind}]")
    return "\n".join(lines)


def _write(call: Invocation, found: "Review", form: str, out: str | None) -> None:
    if form == "text":
        if call.json and out is not None:
            Path(out).write_text(json.dumps(found.as_dict(), indent=2) + "\n", encoding="utf-8")
            return
        confidence = "" if found.confidence is None else f", confidence {found.confidence} of 100"
        known = " (on record)" if found.already else ""
        show(found, as_json=call.json, text=f"{found.verdict}{confidence}: tree {found.tree[:12]}, {found.id}{known}")
        return
    text = markdown(found) if form == "markdown" else json.dumps(sarif(found), indent=2) + "\n"
    if out is None:
        sys.stdout.write(escape_for_terminal(text))
    else:
        Path(out).write_text(text, encoding="utf-8")


@click.group(cls=SuggestingGroup)
def prompt() -> None:
    """Show the prompt of a call site: its parts, their order, and about how many tokens."""


@prompt.command("list")
@click.pass_obj
def list_(call: Invocation) -> int:
    """List the call sites whose prompts come with Decklog."""
    return show([{"site": site} for site in known_sites()], as_json=call.json)


@prompt.command("show")
@click.argument("site", required=False)
@click.option(
    "--from", "commit", metavar="COMMIT", default="HEAD", help="the commit whose documents and settings are used, default HEAD"
)
@click.option("--task", "task_id", metavar="TASK", help="with an agent's brief for this task")
@click.pass_obj
def show_(call: Invocation, site: str | None, commit: str, task_id: str | None) -> int:
    """Print the prompt of a call site, such as review.6; the parts and their tokens go to stderr.

    Documents, skills and prompts of the repository's own are those of the commit, as [prompt] in its decklog.toml names them.
    """
    if site is None:
        raise WrongUsage(
            "missing argument: SITE",
            hint=f"Name a call site, such as: decklog prompt show review.6. There are: {', '.join(known_sites())}",
        )
    repository = Repository.here()
    first = starting_commit(repository, commit)
    settings = read_settings(repository.read(first, "decklog.toml") or b"")
    composer = Composer(settings, lambda path: repository.read(first, path))
    task, prime = _read_task(call, task_id) if task_id else ("", "")
    return _show_prompt(call, composer.compose(site, task=task, prime=prime))


def _read_task(call: Invocation, task_id: str) -> tuple[str, str]:
    with call.open(writing=False) as log:
        task = log.tasks.get(task_id)
        return "\n".join((task.title, task.objective)).strip(), Prime(log, run_id=task.run_id, task_id=task.id).text()


def _show_prompt(call: Invocation, composed: ComposedPrompt) -> int:
    prompt = composed.prompt
    parts: list[dict[str, Any]] = [
        {"name": part.name, "stable": part.is_stable, "tokens": -(-len(part.text) // 4), "digest": part.digest}
        for part in prompt.parts
    ]
    whole = {"digest": prompt.digest, "tokens": prompt.tokens, "fits": composed.fits, "left_out": list(composed.left_out)}
    if call.json:
        return show({**whole, "parts": parts, "text": prompt.text}, as_json=True)
    sys.stdout.write(escape_for_terminal(prompt.text))
    for part in parts:
        _print_remark(
            f"{part['name']}: about {part['tokens']} tokens{', stable' if part['stable'] else ''}, {part['digest'][:12]}"
        )
    _print_remark(f"about {prompt.tokens} of {composed.most_tokens} tokens, {prompt.digest[:12]}")
    for name in composed.left_out:
        _print_remark(f"left out: {name}")
    return 0 if composed.fits else 1


def _print_remark(text: str) -> None:
    """Print a remark to stderr."""
    sys.stderr.write(escape_for_terminal(text, sys.stderr) + "\n")
