"""Proving that a log is whole, and finding what ails it."""

import click

from decklog.cli.call import Call
from decklog.cli.exits import print_json
from decklog.cli.show import show
from decklog.errors import Invalid


class NotWhole(Invalid):
    code = "not_whole"


class Trouble(Invalid):
    code = "trouble"


def _print_findings(data: "dict[str, object]", problem: Invalid | None) -> int:
    """Print the data of a check; when something was found it is an error too, in the place where errors are."""
    envelope: dict[str, object] = {"ok": problem is None, "data": data, "next": None, "warnings": []}
    if problem is not None:
        envelope["error"] = problem.as_dict()
    print_json(envelope)
    return 0 if problem is None else 1


@click.command()
@click.argument("stream", required=False)
@click.option("--anchor", metavar="FILE", help="a file outside the log that keeps the heads, so that a cut-off tail shows")
@click.pass_obj
def verify(call: Call, stream: str | None, anchor: str | None) -> int:
    """Walk the hash chains and rebuild every record; name the first thing that is wrong (exit 1)."""
    with call.open(writing=False) as log:
        result = log.journal.verify(stream, anchor=anchor)
    if call.json:
        return _print_findings(result.as_dict(), NotWhole(f"not whole: {result.first.what}") if result.first else None)
    for problem in result.problems:
        place = f"{problem.stream}:{problem.seq}  " if problem.stream else ""
        click.echo(f"WRONG  {place}{problem.what}")
    counted = f"{result.streams} streams, {result.entries} entries, {result.records} records"
    click.echo(f"{'Whole' if result.ok else 'Not whole'}: {counted}" + (f", {result.anchored} anchors" if anchor else ""))
    return 0 if result.ok else 1


@click.command()
@click.pass_obj
def doctor(call: Call) -> int:
    """Look for trouble with the engine, the file and the schema, and say what mends it."""
    with call.open(writing=False) as log:
        facts = log.db.facts()
        findings = [*_file_findings(facts), *_schema_findings(facts)]
    if call.json:
        first = findings[0] if findings else None
        return _print_findings({**facts, "findings": findings}, Trouble(first["what"], hint=first["mend"]) if first else None)
    show({name: value for name, value in facts.items() if name != "steps"}, as_json=False)
    for finding in findings:
        click.echo(f"TROUBLE  {finding['what']}\n         {finding['mend']}")
    click.echo("No trouble found." if not findings else f"{len(findings)} found.")
    return 1 if findings else 0


def _file_findings(facts: "dict[str, object]") -> list[dict[str, str]]:
    findings: list[dict[str, str]] = []
    if facts["engine"] != "sqlite":
        return findings
    if str(facts["mode"])[-2:] != "00":
        findings.append({"what": f"others can read the log (mode {facts['mode']})", "mend": f"chmod 600 {facts['path']}"})
    if facts["journal_mode"] != "wal" and not facts["read_only"]:
        findings.append({"what": f"the journal mode is {facts['journal_mode']}", "mend": "decklog migrate"})
    if int(str(facts["wal_bytes"])) > 256 * 1024 * 1024:
        findings.append(
            {
                "what": f"the WAL has {facts['wal_bytes']} bytes",
                "mend": "End readers that have been open for long; it shrinks by itself.",
            }
        )
    return findings


def _schema_findings(facts: "dict[str, object]") -> list[dict[str, str]]:
    steps = facts.get("steps")
    changed = [step["name"] for step in steps if not step["unchanged"]] if isinstance(steps, list) else []
    if not changed:
        return []
    return [{"what": f"applied migrations differ from the shipped ones: {', '.join(changed)}", "mend": "Reinstall Decklog."}]
