"""Replace secrets in text."""

import json
import sys
from typing import IO

import click

from decklog.redaction import explain as explain_text
from decklog.redaction import redact as redact_text


@click.command()
@click.argument("file", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--jsonl", is_flag=True, help="one JSON string a line, in and out")
@click.option("--explain", is_flag=True, help="print what was found and the rule or features that decided, instead of the text")
def redact(file: IO[str], jsonl: bool, explain: bool) -> int:
    """Copy text from a file or stdin to stdout with its secrets replaced by `[redacted:KIND]`."""
    from decklog.cli.call import WrongUsage

    if jsonl and explain:
        raise WrongUsage("--explain and --jsonl exclude each other")
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    if explain:
        _explain(file.read())
        return 0
    if not jsonl:
        sys.stdout.write(redact_text(file.read()))
        return 0
    for number, line in enumerate(file, 1):
        if line.strip():
            sys.stdout.write(_as_json(_redact_line(number, line)) + "\n")
    return 0


def _explain(text: str) -> None:
    """Print one line for each finding; the value itself is not printed."""
    found = explain_text(text)
    for one in found:
        line = text.count("\n", 0, one.start) + 1
        column = one.start - (text.rfind("\n", 0, one.start) + 1) + 1
        score = "" if one.score is None else f", score {one.score:+.2f}: {', '.join(one.features)}"
        print(f"{line}:{column} {one.kind} ({one.end - one.start} characters) by {one.reason}{score}")
    if not found:
        print("Nothing found.")


def _as_json(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)  # half of a surrogate pair can only be written as an escape
    return json.dumps(text, ensure_ascii=False)


def _redact_line(number: int, line: str) -> str:
    from decklog.cli.call import WrongUsage

    try:
        text = json.loads(line)
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise WrongUsage(f"line {number} is not a JSON string")
    return redact_text(text)
