"""The log itself: find it, migrate it, verify it, follow it and search it."""

from typing import TYPE_CHECKING

import click

from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.groups import for_the_owner
from decklog.cli.show import show, show_stream
from decklog.cli.terminal import ProgressMeter
from decklog.core.display import counted
from decklog.core.errors import Invalid, NotAccepted, SchemaTooOld
from decklog.location.locate import LogLocation, locate

if TYPE_CHECKING:
    from decklog import Verification

PENDING = 7


@click.command()
@click.pass_obj
def where(call: Invocation) -> int:
    """Show which log is used here, and how it was found."""
    place = locate(call.db)
    facts: dict[str, object] = {"target": place.shown, "because": place.reason, "exists": place.exists}
    try:
        place.check()
    except NotAccepted as problem:
        facts |= {"problem": problem.message, "hint": problem.hint}
    return show(facts, as_json=call.json)


@click.command()
@click.option("--schema", default="public", metavar="NAME", help="the schema that the log's tables are in, default public")
@click.pass_obj
def roles(call: Invocation, schema: str) -> int:
    """Write the SQL that creates PostgreSQL roles for readers, agents and managers; the database owner runs it.

    It connects to nothing and changes nothing: decklog roles | psql postgresql://OWNER@HOST/DATABASE
    """
    from decklog.transfer.projects import roles_sql

    sql = roles_sql(schema)
    return show({"sql": sql}, as_json=call.json, text=sql.rstrip("\n"))


@for_the_owner
@click.command()
@click.option("--check", is_flag=True, help="only list the migrations that are missing; exit 7 if there are any")
@click.pass_obj
def migrate(call: Invocation, check: bool) -> int:
    """Bring the log's schema up to date, and a SQLite file's journal mode back to WAL.

    A SQLite file is copied first and is also migrated when it is opened; PostgreSQL is migrated only by this.
    """
    place = locate(call.db)
    place.must_exist()
    if check:
        return _check_schema(call, place)
    with place.open(migrate=True) as log:
        log.db.migrate()
        facts = log.db.facts()
    return show({"target": place.shown, "schema": facts["schema"]}, as_json=call.json)


def _check_schema(call: Invocation, place: LogLocation) -> int:
    """Open the log without migrating it, and list its missing steps."""
    missing: list[str] = []
    try:
        place.open(read_only=True).close()
    except SchemaTooOld as problem:
        missing = problem.details["missing"]
    show({"target": place.shown, "missing": missing, "up_to_date": not missing}, as_json=call.json)
    return PENDING if missing else 0


REBUILD = "The journal is intact; only tables derived from it are wrong. To rebuild them: decklog rebuild"


class VerificationFailed(Invalid):
    """Verification found a problem."""

    code = "not_whole"


def _verification_error(result: "Verification", hint: str | None = None) -> VerificationFailed | None:
    return VerificationFailed(f"verification failed: {result.first.what}", hint=hint) if result.first else None


@click.command()
@click.argument("stream", required=False)
@click.option("--anchor", metavar="FILE", help="a file outside the log that keeps the heads, so that a cut-off tail shows")
@click.option("--since-anchor", is_flag=True, help="only what was written after the anchor, or after the last run of verify")
@click.option("--full", is_flag=True, help="read everything: from the first entry on, and all words of the text index")
@click.option("--archives", metavar="FOLDER", help="also check the files of archived runs in this folder")
@click.pass_obj
def verify(call: Invocation, stream: str | None, anchor: str | None, since_anchor: bool, full: bool, archives: str | None) -> int:
    """Verify the hash chains and every record; name the first problem (exit 1).

    An interrupted run of the last day is continued. With --since-anchor, older entries and indexes are not read.
    In a large log the words of a sample are compared with the text index, and a line reports what was not compared.
    """
    from decklog.transfer.archive import Archive
    from decklog.transfer.doctor import verify as verify_all
    from decklog.transfer.doctor import verify_since_anchor

    if stream is not None and since_anchor:
        raise WrongUsage("--since-anchor is for all streams; leave out the stream")
    with call.open(writing=False) as log, ProgressMeter() as meter:
        archive = None if archives is None else Archive(log, archives, meter)
        if stream is not None:
            result = log.journal.verify(stream, anchor=anchor, full=full)
        else:
            check = verify_since_anchor if since_anchor else verify_all
            result = check(log, anchor=anchor, full=full, progress=meter)
        if archive is not None:
            archive.verify(result)
        is_derived = all(problem.table in log.derived_tables() or problem.column == "head_seq" for problem in result.problems)
    hint = REBUILD if result.problems and is_derived else None
    lines = [f"WRONG  {f'{one.stream}:{one.seq}  ' if one.stream else ''}{one.what}" for one in result.problems]
    lines += [*(f"NOT CHECKED  {what}" for what in result.unchecked), *([hint] if hint else [])]
    entries, streams = counted(result.entries, "entry", "entries"), counted(result.streams, "stream")
    since = " since the anchor" if result.since_anchor else ""
    parts = [f"{entries} in {streams} verified{since}", counted(result.records, "record")]
    parts += [counted(result.anchored, "anchor")] if anchor or since_anchor else []
    lines.append(f"{'OK' if result.ok else 'FAILED'}: {', '.join(parts)}")
    return show(result, as_json=call.json, text="\n".join(lines), warnings=[], problem=_verification_error(result, hint))


@click.command()
@click.pass_obj
def rebuild(call: Invocation) -> int:
    """Rebuild what the log derives from its journal: sums, counts and the search index.

    Nothing is lost by it. The next search has to read all entries again.
    """
    with call.open(writing=True) as log:
        log.rebuild(words=True)
        result = log.journal.verify()
    text = "Rebuilt. The log verifies." if result.ok else "Rebuilt, but problems remain. List them: decklog verify"
    return show(result, as_json=call.json, text=text, warnings=[], problem=_verification_error(result))


@click.command()
@click.argument("stream", required=False)
@click.option("--after", type=int, metavar="N", help="start after this entry of the stream")
@click.option("--follow/--no-follow", default=True, help="wait for new entries (the default)")
@click.option("--timeout", type=float, metavar="SECONDS", help="stop after this time without a new entry")
@click.pass_obj
def watch(call: Invocation, stream: str | None, after: int | None, follow: bool, timeout: float | None) -> int:
    """Show entries as they happen, of one run or of all.

    With --json each entry is one line.
    """
    with call.open(writing=False) as log:
        entries = log.journal.tail(stream, after=after, follow=follow, timeout_seconds=timeout)
        return show_stream(entries, as_json=call.json, of_one_stream=stream is not None)


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--run", "stream", metavar="RUN", help="only in this run")
@click.option("--limit", type=int, default=20, metavar="N", show_default=True, help="most entries to return")
@click.option("--after", metavar="CURSOR", help="the `next` of the page before")
@click.pass_obj
def search(call: Invocation, words: tuple[str, ...], stream: str | None, limit: int, after: str | None) -> int:
    """Find entries that have all the words, newest first; `word*` matches a beginning."""
    with call.open(writing=False) as log:
        return show(log.journal.search(" ".join(words), stream=stream, limit=limit, after=after), as_json=call.json)
