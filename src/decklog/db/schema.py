"""Migrations: numbered steps in SQL, forward only, each with a checksum.

A step is a file `NNNN_name.sql`, or a folder `NNNN_name` of such files, one a domain, applied in the order of their names. One
text serves both engines: the types they spell differently stand in it as `{text}`, `{integer}`, `{real}` and `{bytes}`, and
`{strict}` closes a table. Where more differs, a file is a pair, `name.sqlite.sql` and `name.postgres.sql`.
A step that has landed is never edited: a log that was made by another text of it is refused.

A step whose name ends in `_compatible` only adds what an older program can ignore, such as a column with a default or an index.
Programs of the schema before it can still read and write the log, so that a fleet is upgraded one process at a time.
"""

import os
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

from decklog.core.clock import from_text, to_text
from decklog.core.errors import SchemaDiffers, SchemaTooNew, SchemaTooOld
from decklog.db.checksums import CHECKSUMS

# What a database has, by kind, table and name, each with the text that defines it.
Objects = dict[tuple[str, str, str], str]


class MigrationStep(NamedTuple):
    """One step: its number, its name, and where it lies."""

    version: int
    name: str
    path: str


COMPATIBLE = "_compatible"
# The newest step that a program must know to write to a log.
REQUIRED = f"select max(version) from schema_steps where name not like '%{COMPATIBLE}'"
APPLIED = "select version, name, checksum, applied_at, digest from schema_steps order by version"
WRITE_DIGEST = "update schema_steps set digest = :digest where version = :version"
FOLDER = _SHIPPED = os.path.join(os.path.dirname(__file__), "migrations")

_SPELLINGS = {
    "sqlite": {"{text}": "text", "{integer}": "integer", "{real}": "real", "{bytes}": "blob", "{strict}": " strict"},
    # The C collation makes PostgreSQL compare text byte by byte, as SQLite does: ids and times sort the same on both.
    "postgres": {
        "{text}": 'text collate "C"',
        "{integer}": "bigint",
        "{real}": "double precision",
        "{bytes}": "bytea",
        "{strict}": "",
    },
}


@cache
def steps(engine: str) -> tuple[MigrationStep, ...]:  # noqa: ARG001 - both have the same steps, of other texts
    """List the steps of one engine in order."""
    # The files of a step are listed when it is read: hardly any call that opens a log does.
    names = sorted(name for name in os.listdir(FOLDER) if name[:4].isdigit())
    return tuple(MigrationStep(int(name[:4]), name.partition(".")[0], f"{FOLDER}{os.sep}{name}") for name in names)


def _files(step: MigrationStep, engine: str) -> Iterator[str]:
    if not os.path.isdir(step.path):
        yield step.path
        return
    for name in sorted(os.listdir(step.path)):
        _, *engines, ending = name.split(".")
        if ending == "sql" and engines in ([], [engine]):
            yield os.path.join(step.path, name)


def latest(engine: str) -> int:
    return steps(engine)[-1].version


def required(applied: Iterable[tuple[Any, ...]]) -> int:
    """Return the newest step that a program must know to write to a log with these steps (version, name, …)."""
    return max((version for version, name, *_ in applied if not name.endswith(COMPATIBLE)), default=0)


def check_open(found: int, version: int, target: str) -> None:
    """Refuse to go on with a log that was migrated beyond the schema that this process knows."""
    if found > version:
        raise SchemaTooNew(
            f"{target} was migrated to schema {found} while this process had it open at {version}",
            hint="Restart this process with the newer Decklog.",
            found=found,
            supported=version,
        )


def check_required(needed: int, engine: str, target: str) -> None:
    """Refuse a log that only a newer Decklog knows how to write to."""
    if needed > latest(engine):
        raise SchemaTooNew(
            f"{target} has schema {needed}; this Decklog knows up to {latest(engine)}",
            hint="Upgrade Decklog, and try again.",
            found=needed,
            supported=latest(engine),
        )


def too_old(target: str, found: int, engine: str, *, hint: str) -> SchemaTooOld:
    """Build the error for a log that lacks steps."""
    return SchemaTooOld(
        f"{target} has schema {found} and this Decklog needs {latest(engine)}",
        hint=hint,
        found=found,
        supported=latest(engine),
        missing=[step.name for step in steps(engine) if step.version > found],
    )


@cache
def text_of(step: MigrationStep, engine: str) -> str:
    """Read a step in the engine's own spelling."""
    texts = []
    for path in _files(step, engine):
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    text = "\n".join(texts)
    for placeholder, spelled in _SPELLINGS[engine].items():
        text = text.replace(placeholder, spelled)
    return text


def checksum_of(step: MigrationStep, engine: str) -> str:
    """Digest a step as the engine gets it. Those that are shipped were digested before: every call that opens a log asks."""
    known = CHECKSUMS[engine].get(step.name) if FOLDER == _SHIPPED else None
    return known or digested(step, engine)


@cache
def digested(step: MigrationStep, engine: str) -> str:
    """Digest the text of a step."""
    return sha256(text_of(step, engine).encode()).hexdigest()


def check_steps(applied: Iterable[tuple[Any, ...]], engine: str, target: str) -> None:
    """Refuse a log one of whose steps (version, name, checksum) is not the shipped one: its tables may be others than ours."""
    shipped = {step.version: step for step in steps(engine)}
    for version, name, checksum in applied:
        step = shipped.get(version)
        if step is not None and checksum != checksum_of(step, engine):
            raise SchemaDiffers(
                f"{target} was made by another text of migration {name} than the one this Decklog ships",
                hint="Open it with the Decklog that made it, and move it from there: decklog move.",
                step=name,
                found=checksum,
                shipped=checksum_of(step, engine),
            )


def check_known(applied: Iterable[tuple[Any, ...]], engine: str) -> None:
    """Raise SchemaTooNew if a compatible step of a newer Decklog was applied: its tables can't be compared."""
    for version, name, *_ in applied:
        if version > latest(engine):
            raise SchemaTooNew(f"the migration {name} is of a newer Decklog; compare the schema with that one")


def differences(expected: Objects, found: Objects) -> Iterator[dict[str, Any]]:
    """Name what was dropped from a schema, added to it or altered in it, each as the fields of a problem."""
    # Most often there is nothing to name, and to sort all there is would take longer than to compare it.
    if expected == found:
        return
    for key in sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)):
        kind, table, name = key
        became = "was dropped" if key not in found else "was added" if key not in expected else "differs from the schema"
        whose = "" if table in ("", name) else f" of {table}"
        where = {"table": table or None, "column": name if kind == "column" else None}
        yield {"what": f"the {kind} {name}{whose} {became}", **where}


def missing_digests(applied: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    """Compute the digests that rows of `APPLIED` lack, each as `version` and `digest`."""
    previous = ""
    for version, name, checksum, at, digest in applied:
        previous = digest or _step_digest(previous, version, name, checksum, at)
        if digest is None:
            yield {"version": version, "digest": previous}


def _step_digest(previous: object, *values: object) -> str:
    return sha256("\n".join(map(str, (previous, *values))).encode(errors="backslashreplace")).hexdigest()


def step_differences(applied: Iterable[tuple[Any, ...]], engine: str) -> Iterator[dict[str, Any]]:
    """Name the rows of `APPLIED` that are not those of the shipped steps, or were changed since they were written."""
    shipped = {step.version: {"name": step.name, "checksum": checksum_of(step, engine)} for step in steps(engine)}
    previous: object = ""
    for version, name, checksum, at, digest in applied:
        expected, previous = _step_digest(previous, version, name, checksum, at), digest
        step = shipped.pop(version, None)
        where = {"table": "schema_steps", "record_id": str(version)}
        if step is None:
            yield {"what": f"schema_steps {version} is no step of this Decklog", **where, "column": "version"}
            continue
        said = {"name": name, "checksum": checksum}
        wrong = [column for column, value in step.items() if said[column] != value]
        if not is_time(at) or (digest != expected and not wrong):
            # The digest may have been changed instead.
            wrong.append("applied_at")
        for column in wrong:
            yield {"what": f"schema_steps {version} has another {column} than was written", **where, "column": column}
    for version in shipped:
        yield {"what": f"schema_steps {version} is gone", "table": "schema_steps", "record_id": str(version)}


def is_time(text: object) -> bool:
    """Return whether something is a time as Decklog writes it."""
    try:
        return isinstance(text, str) and to_text(from_text(text)) == text
    except ValueError:
        return False
