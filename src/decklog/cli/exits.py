"""The output of a call: its shape, its errors with their exit codes, and its JSON."""

import sys
from collections.abc import Iterator
from typing import Any

from decklog.cli.call import Invocation, WrongUsage
from decklog.core import errors

# Fields with JSON of users, in which an empty value may be significant.
USER_JSON_FIELDS = frozenset(
    (
        *("arguments", "command", "config", "content", "details", "document", "error", "evidence_files", "extra", "facts"),
        *("findings", "inputs", "metadata", "notes", "payload", "result", "review_passes", "scope", "signature", "snapshot"),
        *("template_values", "value"),
    )
)


class OutputShape:
    """Selects the fields of records to show, and collects the names of the omitted ones."""

    def __init__(self, *, brief: bool = False, fields: tuple[str, ...] = ()) -> None:
        self.brief = brief
        self.fields = fields
        self._left_out: set[str] = set()
        # Warn about chosen fields that no record has: the command itself succeeded.
        self.warnings: list[str] = []

    @property
    def is_whole(self) -> bool:
        return not self.brief and not self.fields

    def of_envelope(self, envelope: dict[str, Any]) -> dict[str, Any]:
        """Return an envelope with its data in this shape, and a note on the omitted fields."""
        shaped = {**envelope, "data": self.of_data(envelope["data"])} if "data" in envelope else dict(envelope)
        if self.warnings:
            shaped["warnings"] = [*shaped.get("warnings", ()), *self.warnings]
        if self.brief:
            shaped = {name: value for name, value in shaped.items() if name == "data" or not _is_empty(value)}
            if isinstance(shaped.get("error"), dict):
                shaped["error"] = _drop_empty(shaped["error"])
        return {**shaped, "left_out": note} if (note := self.left_out) else shaped

    def of_data(self, data: Any) -> Any:
        """Return JSON values in this shape."""
        if self.fields:
            self._look_for_unknown(data)
            data = self._chosen(data)
        return self._without_empties(data) if self.brief else data

    @property
    def left_out(self) -> str | None:
        """Describe the omitted fields, and how to see them."""
        if not self._left_out:
            return None
        if self.fields:
            return f"{len(self._left_out)} other fields"
        return f"{len(self._left_out)} empty fields; --no-brief shows them"

    def _without_empties(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self._without_empties(item) for item in data]
        if not isinstance(data, dict):
            return data
        kept = _drop_empty(data)
        self._left_out |= data.keys() - kept.keys()
        return {name: value if name in USER_JSON_FIELDS else self._without_empties(value) for name, value in kept.items()}

    def _chosen(self, data: Any) -> Any:
        """Keep the chosen fields of a record, or of all records in nested lists."""
        if isinstance(data, list):
            return [self._chosen(item) for item in data]
        if not isinstance(data, dict):
            return data
        if not any(name in data for name in self.fields):
            return {name: self._chosen(value) for name, value in data.items() if isinstance(value, (dict, list))}
        self._left_out |= data.keys() - set(self.fields)
        return {name: data[name] for name in self.fields if name in data}

    def _look_for_unknown(self, data: Any) -> None:
        known = dict.fromkeys(_field_names(data))
        for name in self.fields:
            if known and name not in known:
                from decklog.cli.suggestions import suggestion_hint

                suggestion = suggestion_hint(name, known, f"There are: {', '.join(known)}")
                self.warnings.append(f"there is no field {name} in this answer. {suggestion}")


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value == [] or value == {}


def _drop_empty(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if not _is_empty(value)}


def _field_names(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        yield from data
        for name, value in data.items():
            if name not in USER_JSON_FIELDS:
                yield from _field_names(value)
    elif isinstance(data, list):
        for item in data:
            yield from _field_names(item)


# A process runs one command, so all its output has one shape.
_shape = OutputShape()


def set_output_shape(call: Invocation) -> None:
    """Set the shape and the colours of the output by the options of a call."""
    global _shape
    _shape = OutputShape(brief=(call.json and call.is_brief) or bool(call.brief), fields=call.chosen_fields)
    if call.no_color:
        from decklog.cli import terminal

        terminal.disable_colours()


def output_shape() -> OutputShape:
    return _shape


# The first matching class determines the exit code.
EXIT_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (WrongUsage, 2),
    (errors.Busy, 75),
    (errors.TimedOut, 124),
    (errors.StillPending, 7),
    (errors.Refused, 6),
    (errors.NotFound, 3),
    (errors.Denied, 4),
    (errors.Conflict, 5),
    (errors.DiskFull, 5),
    (errors.Unavailable, 1),
    (errors.Invalid, 1),
    (KeyboardInterrupt, 130),
    (BaseException, 1),
)


def exit_code(problem: BaseException) -> int:
    return next(code for kind, code in EXIT_CODES if isinstance(problem, kind))


def report_error(problem: BaseException, *, as_json: bool) -> int:
    """Print an error to stderr, or as JSON to stdout; return the exit code."""
    if isinstance(problem, KeyboardInterrupt):
        return 130
    if not isinstance(problem, errors.DecklogError):
        import traceback

        traceback.print_exception(problem)
        problem = errors.DecklogError(f"{type(problem).__name__}: {problem}", hint="This is a bug in Decklog.")
    if as_json:
        print_json({"ok": False, "error": problem.as_dict(), "warnings": []})
    else:
        from decklog.cli.terminal import BAD, escape_for_terminal, style_text

        sys.stderr.write(f"{style_text('decklog:', BAD, sys.stderr)} {escape_for_terminal(problem.message, sys.stderr)}\n")
        if problem.hint:
            sys.stderr.write(f"  {escape_for_terminal(problem.hint, sys.stderr)}\n")
    return exit_code(problem)


def print_json(value: Any) -> None:
    """Print one JSON value in the shape of this call."""
    import json

    from decklog.cli.terminal import escape_json

    if not _shape.is_whole:
        is_envelope = isinstance(value, dict) and "ok" in value
        value = _shape.of_envelope(value) if is_envelope else _shape.of_data(value)
    sys.stdout.write(escape_json(json.dumps(value, ensure_ascii=False)) + "\n")


class ProblemFound(errors.Invalid):
    """A check found a problem."""

    code = "trouble"
