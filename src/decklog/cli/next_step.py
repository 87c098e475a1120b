"""What to do after an error that does not say so itself: a command that can be typed as it stands."""

from decklog.cli.call import HAND_WRITTEN, Invocation, WrongUsage
from decklog.core import errors

# A hint with one of these already names something to type.
_TYPED = ("decklog ", "Did you mean ", "--run ", "--as ", "pip install", "pipx install", "uv tool install", "chmod", "git ")

# These list all runs at once only with a filter.
_LISTED_BY = {"tasks": "tasks find --state running"}
# What a store lists by another verb than `find`.
_LISTED = {"notify_rules": "notices rules", "contradictions": "memory contradictions"}


def add_next_step(problem: BaseException, call: Invocation) -> None:
    """Put a command behind the hint of an error that names nothing to type."""
    if not isinstance(problem, errors.DecklogError) or problem.retryable:
        return
    said = (problem.hint or "").removesuffix(".")
    if not any(typed in said for typed in _TYPED):
        problem.hint = ". ".join(part for part in (said, _step(problem, call)) if part) or None


def _step(problem: errors.DecklogError, call: Invocation) -> str | None:
    store, path = _command(call.words)
    if store is None and "path" in problem.details and isinstance(problem, (errors.NotFound, errors.Conflict)):
        # It is about a file, and what the log holds tells nothing of it.
        return f"See its options: decklog {path}--help"
    if isinstance(problem, errors.NotFound):
        return f"See what there is: decklog {_LISTED.get(str(problem.details.get('table'))) or _listing(store)}"
    if isinstance(problem, (errors.Conflict, errors.Denied)):
        shown = _showing(store, problem.details.get("id"))
        return f"See how it stands: decklog {shown}" if shown else f"See what there is: decklog {_listing(store)}"
    if isinstance(problem, (WrongUsage, errors.Invalid)):
        return f"See its options: decklog {path}--help"
    return None


def _command(words: list[str]) -> tuple[str | None, str]:
    """Name the store and the command that words begin with, as far as there are such."""
    from decklog.log import STORES

    first = words[0].replace("-", "_") if words else ""
    if first not in STORES:
        return None, f"{words[0]} " if first and not first.startswith("_") else ""
    is_verb = len(words) > 1 and words[1].replace("_", "-") in _verbs(first)
    return first, f"{words[0]} {words[1]} " if is_verb else f"{words[0]} "


def _verbs(store: str) -> list[str]:
    from decklog.cli.derived import operations

    return [*operations(store), *HAND_WRITTEN.get(store, ())]


def _needs(store: str, verb: str) -> int | None:
    """Count what a verb can't do without; None where a store has no such verb."""
    from decklog.cli.derived import operations
    from decklog.cli.parameters import parameters_of

    operation = operations(store).get(verb)
    return None if operation is None else sum(parameter.required for parameter in parameters_of(operation))


def _listing(store: str | None) -> str:
    """Return the command that lists what a store has; records of a run are listed from the runs."""
    if store in _LISTED_BY:
        return _LISTED_BY[store]
    is_listed = store is not None and _needs(store, "find") == 0
    return f"{str(store).replace('_', '-')} find" if is_listed else "runs find"


def _showing(store: str | None, record_id: object) -> str | None:
    if (
        store is None
        or not isinstance(record_id, str)
        or ("show" not in HAND_WRITTEN.get(store, ()) and _needs(store, "show") != 1)
    ):
        return None
    return f"{store.replace('_', '-')} show {record_id}"
