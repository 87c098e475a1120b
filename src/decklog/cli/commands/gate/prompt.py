"""Prompts on the command line, exactly as a model gets them."""

import sys
from pathlib import Path
from typing import Any

import click

from decklog.agents.prime import Prime
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.meant import SuggestingGroup
from decklog.cli.show import show
from decklog.cli.terminal import visible
from decklog.conductor.git.repository import Repository, starting_commit
from decklog.core.folders import state_home
from decklog.models.composer import Composed, Composer, known_sites, read_settings


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
            "which prompt?",
            hint=f"Name a call site, such as: decklog prompt show review.6. There are: {', '.join(known_sites())}",
        )
    repository = Repository.find(Path.cwd(), state_home())
    first = starting_commit(repository, commit, cwd=Path.cwd())
    settings = read_settings(repository.read(first, "decklog.toml") or b"")
    composer = Composer(settings, lambda path: repository.read(first, path))
    task, prime = _read_task(call, task_id) if task_id else ("", "")
    return _shown(call, composer.compose(site, task=task, prime=prime))


def _read_task(call: Invocation, task_id: str) -> tuple[str, str]:
    with call.open(writing=False) as log:
        task = log.tasks.get(task_id)
        return "\n".join((task.title, task.objective)).strip(), Prime(log, run_id=task.run_id, task_id=task.id).text()


def _shown(call: Invocation, composed: Composed) -> int:
    prompt = composed.prompt
    parts: list[dict[str, Any]] = [
        {"name": part.name, "stable": part.is_stable, "tokens": -(-len(part.text) // 4), "digest": part.digest}
        for part in prompt.parts
    ]
    whole = {"digest": prompt.digest, "tokens": prompt.tokens, "fits": composed.fits, "left_out": list(composed.left_out)}
    if call.json:
        return show({**whole, "parts": parts, "text": prompt.text}, as_json=True)
    sys.stdout.write(visible(prompt.text))
    for part in parts:
        _tell(f"{part['name']}: about {part['tokens']} tokens{', stable' if part['stable'] else ''}, {part['digest'][:12]}")
    _tell(f"about {prompt.tokens} of {composed.most_tokens} tokens, {prompt.digest[:12]}")
    for name in composed.left_out:
        _tell(f"left out: {name}")
    return 0 if composed.fits else 1


def _tell(text: str) -> None:
    """Print a remark to stderr."""
    sys.stderr.write(visible(text, sys.stderr) + "\n")
