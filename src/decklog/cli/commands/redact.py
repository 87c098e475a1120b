"""Taking secrets out of text."""

import json
import sys

import click

from decklog.redact import redact as redact_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO


@click.command()
@click.argument("file", type=click.File("r", encoding="utf-8", errors="surrogateescape"), default="-")
@click.option("--jsonl", is_flag=True, help="one JSON string a line, in and out")
def redact(file: "IO[str]", jsonl: bool) -> int:
    """Copy text from a file or stdin to stdout with its secrets replaced by `[redacted:KIND]`."""
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    if not jsonl:
        sys.stdout.write(redact_text(file.read()))
        return 0
    for number, line in enumerate(file, 1):
        if line.strip():
            sys.stdout.write(_as_json(_redact_line(number, line)) + "\n")
    return 0


def _as_json(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(text)  # half of a surrogate pair can only be written as an escape
    return json.dumps(text, ensure_ascii=False)


def _redact_line(number: int, line: str) -> str:
    from decklog.cli.call import Usage

    try:
        text = json.loads(line)
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise Usage(f"line {number} is not a JSON string")
    return redact_text(text)
