"""Proving that a log is whole, and finding what ails it."""

from typing import Any

import click

from decklog.cli.agent_programs.setting_up import examine, guard_findings
from decklog.cli.call import Invocation, WrongUsage
from decklog.cli.exits import Trouble, print_findings
from decklog.cli.show import show
from decklog.cli.terminal import ProgressMeter, say
from decklog.core.errors import Damaged, Invalid
from decklog.core.figures import counted
from decklog.location.locate import locate

REBUILD = "Only what is derived from the journal is wrong, and the journal is whole: `decklog rebuild` makes it anew."


class NotWhole(Invalid):
    code = "not_whole"


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
    if call.json:
        return print_findings(result.as_dict(), NotWhole(f"not whole: {result.first.what}", hint=hint) if result.first else None)
    for problem in result.problems:
        place = f"{problem.stream}:{problem.seq}  " if problem.stream else ""
        say(f"WRONG  {place}{problem.what}")
    for what in result.unchecked:
        say(f"NOT CHECKED  {what}")
    if hint:
        say(hint)
    entries, streams = counted(result.entries, "entry", "entries"), counted(result.streams, "stream")
    since = " since the anchor" if result.since_anchor else ""
    parts = [f"{entries} in {streams} verified{since}", counted(result.records, "record")]
    parts += [counted(result.anchored, "anchor")] if anchor or since_anchor else []
    click.echo(f"{'OK' if result.ok else 'FAILED'}: {', '.join(parts)}")
    return 0 if result.ok else 1


@click.command()
@click.pass_obj
def rebuild(call: Invocation) -> int:
    """Rebuild what the log derives from its journal: sums, counts and the search index.

    Nothing is lost by it. The next search has to read all entries again.
    """
    with call.open(writing=True) as log:
        log.rebuild(words=True)
        result = log.journal.verify()
    if call.json:
        return print_findings(result.as_dict(), NotWhole(f"not whole: {result.first.what}") if result.first else None)
    click.echo("Rebuilt: the log is whole." if result.ok else "Rebuilt; `decklog verify` says what is still wrong.")
    return 0 if result.ok else 1


@click.command()
@click.argument("part", required=False, type=click.Choice(["agents"]))
@click.option("--deep", is_flag=True, help="also check every page of a large file, and walk every hash chain as verify does")
@click.pass_obj
def doctor(call: Invocation, part: str | None, deep: bool) -> int:
    """Check engine, file, pages, leases, budgets and locks; name problems and how to fix them.

    `decklog doctor agents` looks at the programs of agents instead: which are installed and set up, whether an event of theirs
    arrives in the log, and what their guard is worth.
    """
    if part == "agents":
        return examine(call)
    facts, findings = _examine(call, deep)
    guards, unguarded = guard_findings()
    facts |= {"guard": ", ".join(f"{name} {result}" for name, result in guards.items())} if guards else {}
    findings += unguarded
    if call.json:
        first = findings[0] if findings else None
        return print_findings({**facts, "findings": findings}, Trouble(first["what"], hint=first["mend"]) if first else None)
    show({name: value for name, value in facts.items() if name != "steps"}, as_json=False)
    for finding in findings:
        say(f"TROUBLE  {finding['what']}\n         {finding['mend']}")
    click.echo("No trouble found." if not findings else f"{len(findings)} found.")
    return 1 if findings else 0


def _examine(call: Invocation, deep: bool) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """Gather the facts and findings; a file that is too damaged to be opened is a finding too."""
    from decklog.transfer.doctor import check_up, holders

    place = locate(call.db)
    try:
        with call.open(writing=False) as log:
            facts = {**log.db.facts(), "written_by": holders(log)}
            with ProgressMeter() as meter:
                return facts, [*_file_findings(facts), *check_up(log, facts, deep=deep, progress=meter)]
    except Damaged as problem:
        mend = f"decklog recover {place.path}, or decklog restore BACKUP"
        finding = {
            "about": "page",
            "what": problem.message,
            "mend": "Restore the server's own backup." if place.is_server else mend,
        }
        return {"path": place.shown if place.is_server else place.path}, [finding]


def _file_findings(facts: dict[str, Any]) -> list[dict[str, str]]:
    if facts["engine"] != "sqlite" or facts["journal_mode"] == "wal" or facts["read_only"]:
        return []
    return [{"about": "mode", "what": f"the journal mode is {facts['journal_mode']}", "mend": "decklog migrate"}]
