"""The interfaces of plug-ins. Implement one, and register it in your package's pyproject.toml:

    [project.entry-points."decklog.plugins"]
    "importer.notes" = "my_package:NotesImporter"

The name is KIND.NAME, with the kinds importer, adapter, agent, model, notifier and check. `decklog plugins` lists what is
installed. See examples/plugin for a package with an importer and an agent program.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from decklog.stores.tasks.task import LinkKind, TaskState

__all__ = [
    "Adapter",
    "AgentProgram",
    "ImportContext",
    "Imported",
    "ImportedComment",
    "ImportedEvent",
    "ImportedLink",
    "ImportedTask",
    "Importer",
    "LinkKind",
    "ModelProvider",
    "Notifier",
    "ReviewCheck",
    "TaskState",
]

# Every command imports this package for one of its modules, and must not import the rooms below for their types.
if TYPE_CHECKING:
    from decklog.agents.setup.supported import Setting
    from decklog.models.provider import Provider
    from decklog.models.settings import ModelChoice
    from decklog.review.change import Change
    from decklog.review.result import Finding


@dataclass(frozen=True)
class ImportContext:
    """The context of an import: the run that gets the tasks, and the notes for the report."""

    run_id: str
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ImportedTask:
    """A work item of the source. `id` must be the same in every import; it becomes the task's id.

    Ids are unique in the whole log, so begin them with your tracker's name, as `todo-12`. Times need a zone.

    Without `updated_at`, what was changed in the log since the last import is kept. `more` is shown to workers.
    A task that somebody works on elsewhere is PAUSED here: RUNNING needs a lease. Without a date in the source, give the
    file's time as `created_at`; it counts at the first import only.
    """

    id: str
    title: str
    objective: str = ""
    state: TaskState = TaskState.PENDING
    # 0 to 100, the highest is claimed first.
    priority: int = 50
    tags: Sequence[str] = ()
    created_at: datetime
    updated_at: datetime | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ImportedLink:
    """A link from one item to another, such as one that it waits for (`LinkKind.BLOCKS`) or is a part of."""

    task_id: str
    other_id: str
    kind: LinkKind = LinkKind.BLOCKS


@dataclass(frozen=True, kw_only=True)
class ImportedComment:
    """A comment on an item. `id` must be unique among the comments of the item."""

    id: str
    task_id: str
    author: str
    body: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class ImportedEvent:
    """Any other event of an item, such as an agent's attempt; it becomes an entry of the journal."""

    id: str
    task_id: str
    kind: str
    body: str
    at: datetime
    payload: Mapping[str, Any] = field(default_factory=dict)


Imported = ImportedTask | ImportedLink | ImportedComment | ImportedEvent


class Importer(Protocol):
    """Reads another tool's data. `decklog import NAME PATH` writes what it yields: each record once, in any number of runs.

    The entry point is an instance, or a class that is called without arguments.
    Secrets are redacted, links that would form a cycle are reported, and tasks that are worked on here are left alone.
    An importer that needs further options registers a click command instead.
    """

    summary: str

    def detect(self, path: Path) -> bool:
        """Return whether path looks like this tool's data; the command refuses other paths."""

    def read(self, path: Path, context: ImportContext) -> Iterator[Imported]:
        """Yield records in any order; ids must be stable across reads. Never change the source.

        Raise `decklog.Invalid` to refuse the file. Append to `context.notes` what is left out.
        """


class AgentProgram(Protocol):
    """A coding agent that `decklog setup NAME` prepares, with `--check`, `--print` and `--remove`.

    Have the agent call `decklog hook claude` with events in the format of Claude Code's hooks to record its sessions.
    """

    title: str
    # "project", "user" or both; the first one is the default.
    scopes: tuple[str, ...]
    # The program to look for, such as "claude"; None if there is none.
    executable: str | None
    # One sentence: what is blocked, and what is only advice.
    guard: str

    def files(self, setting: "Setting") -> dict[str, str]:
        """Return the files to write, by path. Each must be ours alone and contain the word decklog.

        `setting` has `scope`, the folders `home` and `project`, and `call`, the words that start Decklog.
        """


class ModelProvider(Protocol):
    """Creates the client of a model that the settings name with `provider = "NAME"`."""

    def __call__(self, choice: "ModelChoice") -> "Provider":
        """Return a client: an object with `reply(prompt, request)`. Import the provider's library only there.

        It returns a `decklog.models.provider.ModelReply`. Failures are returned with `error_class`: "quota" and "overload"
        are retried, and "login" waits for a person.
        """


class Notifier(Protocol):
    """Sends the notices of rules with the channel `command` and the target `plugin:NAME WORDS…`."""

    def __call__(self, message: Mapping[str, Any], words: Sequence[str]) -> None:
        """Send one notice within ten seconds; raise an OSError to have it sent again later.

        `message` has id, event, what, run_id, made_at and log; `words` are those after the name.
        """


class ReviewCheck(Protocol):
    """Looks for problems in a change, in the first stage of `decklog review`."""

    def __call__(self, change: "Change") -> "Iterable[Finding]":
        """Yield each problem as a `decklog.review.result.Finding`; a blocking one stops the change. Run no code of it."""


class Adapter(Protocol):
    """Connects an agent framework to a log. `decklog plugins` only lists it; users import it in their code."""

    def __call__(self, log: Any) -> Any:
        """Return what the framework takes, such as a checkpointer or a processor of traces, writing to the log."""
