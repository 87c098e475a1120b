"""Build one self-contained HTML page: no scripts or outside resources, all text escaped; for screen, phone and paper."""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape
from typing import Any

from decklog.core.clock import to_text
from decklog.core.errors import Conflict

Row = tuple[Any, ...]

_LONGEST_WORD = 24
_STYLE = """
:root {
  --ink: #1b2330; --soft: #5a6675; --line: #dfe4ea; --paper: #fff; --tint: #f4f6f9;
  --good: #1f7a3d; --bad: #b02a2a; --money: #7a5b00; --accent: #2b5fa8; --warn: #fff4e0; --warn-line: #e5b55a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6eaf0; --soft: #9aa5b4; --line: #333c48; --paper: #14181d; --tint: #1c2229;
    --good: #5fc27e; --bad: #f08a8a; --money: #d9b64a; --accent: #7aa7e6; --warn: #2c2416; --warn-line: #8a6a24;
  }
}
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
body { margin: 0 auto; max-width: 64rem; padding: 2rem 1.25rem 4rem; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .35rem } h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem }
h3 { font-size: .95rem; margin: 1.25rem 0 .4rem; color: var(--soft) } p { margin: .3rem 0 }
.soft { color: var(--soft) } .good { color: var(--good) } .bad { color: var(--bad) } .money { color: var(--money) }
.warn { color: var(--money) }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem }
.figures { margin: 1.25rem 0; padding: 0 }
.figures li { list-style: none; background: var(--tint); border-radius: .5rem; padding: .6rem .8rem }
.figures b { display: block; font-size: 1.25rem; line-height: 1.3 } .figures span { color: var(--soft); font-size: .85rem }
.needs { background: var(--warn); border-left: 4px solid var(--warn-line); padding: .6rem 1rem; margin: 1.25rem 0 }
.needs h2 { margin: 0 0 .3rem } .stuck { background: var(--tint); border-color: var(--bad) }
ul { padding-left: 1.2rem; margin: .3rem 0 }
table { border-collapse: collapse; width: 100%; font-size: .92rem } th { text-align: left; color: var(--soft); font-weight: 600 }
th, td { overflow-wrap: break-word } td.long { overflow-wrap: anywhere }
th, td { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
table + table { margin-top: 1.25rem } td.number + td:not(.number), th.number + th:not(.number) { padding-left: .75rem }
.share { display: grid; grid-template-columns: 12rem 1fr; gap: .75rem; align-items: center; margin: .5rem 0 }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.track { position: relative; height: 1rem; background: var(--tint); border-radius: .2rem }
.bar { position: absolute; top: 0; height: 100%; min-width: 2px; border-radius: .2rem; background: var(--accent) }
.bar.done { background: #2f855a } .bar.failed, .bar.blocked { background: #c0392b } .bar.expired { background: #b7791f }
.bar.abandoned, .bar.released, .bar.paused, .bar.parked { background: #7f8c8d }
.attempt { display: grid; grid-template-columns: 16rem 1fr 9rem; gap: .75rem; padding: .2rem 0; align-items: center }
.attempt > * { min-width: 0; font-size: .9rem }
.story { list-style: none; padding: 0; font-size: .92rem }
.story > li { display: grid; grid-template-columns: 4.5rem 7rem 1fr; gap: .75rem }
.story > li { padding: .2rem 0; border-bottom: 1px solid var(--line) }
.story .text { white-space: pre-wrap; min-width: 0 } .story code { color: inherit }
details summary { cursor: pointer; color: var(--soft) } details ol { color: var(--soft); margin: .3rem 0; padding-left: 1.5rem }
code { font: .88em ui-monospace, monospace } footer { margin-top: 3rem; color: var(--soft); font-size: .85rem }
@media (max-width: 40rem) {
  body { padding: 1.25rem 1rem 3rem } h1 { font-size: 1.3rem }
  table, tbody, tr, td { display: block } thead { display: none } tr { border-bottom: 1px solid var(--line); padding: .4rem 0 }
  td { border: 0; padding: .05rem 0 } td.number { text-align: left; display: inline-block; margin-right: 1rem }
  td.number + td:not(.number) { padding-left: 0 } .share { grid-template-columns: 1fr } td:first-child { font-weight: 600 }
  td[data-name]:not(:first-child)::before { content: attr(data-name) ": "; color: var(--soft); font-weight: 400 }
  td:empty { display: none }
  .attempt { grid-template-columns: 1fr auto; gap: .1rem .75rem } .attempt .track { grid-column: 1 / -1; grid-row: 2 }
  .story > li { grid-template-columns: auto 1fr; gap: 0 .75rem } .story .text { grid-column: 1 / -1 }
}
@media print {
  :root {
    --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --tint: #f2f2f2; --warn: #fff; --warn-line: #000;
    --good: #14532d; --bad: #7f1d1d; --money: #000;
  }
  @page { margin: 15mm } .figures { grid-template-columns: repeat(auto-fit, minmax(6.5rem, 1fr)) }
  body { margin: 0; padding: 0; max-width: none; font-size: 10pt } table, .story { font-size: 9pt }
  h2, h3, thead { break-after: avoid }
  tr, li, .attempt, .needs { break-inside: avoid } .bar, .track, .figures li { print-color-adjust: exact }
}
"""


def write_file(path: str, parts: Iterable[str], *, overwrite: bool) -> int:
    """Write a page to a file that only its owner can read; return its size."""
    flags = os.O_TRUNC if overwrite else os.O_EXCL
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | flags | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise Conflict(f"{path} exists already and was not changed", hint="Add --overwrite.", path=path) from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(parts)
    return os.path.getsize(path)


def document(title: str, parts: Iterable[str], written_at: datetime) -> Iterator[str]:
    """Put the parts of a page between its head and its foot."""
    # The content security policy makes browsers refuse injected content, in case escaping fails.
    yield (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    yield from parts
    yield f"<footer>Written by Decklog, {shown_time(written_at)} UTC.</footer>\n</body>\n</html>\n"


def figures(pairs: Iterable[tuple[str, str]]) -> str:
    """Format the key figures, each a value and its name."""
    items = "".join(f"<li><b>{escape(value)}</b><span>{escape(name)}</span></li>" for value, name in pairs)
    return f'<ul class="figures">{items}</ul>\n'


def called_out(title: str, items: list[str], classes: str = "needs") -> str:
    """Draw a box with important items; return an empty text without any."""
    if not items:
        return ""
    listed = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f'<section class="{classes}"><h2>{title} ({len(items)})</h2><ul>{listed}</ul></section>\n'


def share(percent: float, words: str) -> str:
    """Draw a bar with its label."""
    width = min(max(percent, 0.0), 100.0)
    tone = "failed" if percent >= 100 else "done" if percent < 80 else "expired"
    drawn = f'<span class="track"><span class="bar {tone}" style="left:0;width:{width:.1f}%"></span></span>'
    return f'<div class="share">{drawn}<span>{escape(words)}</span></div>\n'


def table(heads: Row, rows: Iterable[Row], *, numbers: Row = ()) -> Iterator[str]:
    """Draw a table, which becomes a list on a phone; a cell is a text, or a tone and a text."""
    yield f"<table><thead><tr>{''.join(_head(head, numbers) for head in heads)}</tr></thead><tbody>\n"
    for row in rows:
        yield f"<tr>{''.join(_cell(head, cell, numbers) for head, cell in zip(heads, row, strict=True))}</tr>\n"
    yield "</tbody></table>\n"


def _head(head: str, numbers: Row) -> str:
    return f"<th{_class(head, numbers)}>{escape(head)}</th>"


def _class(head: str, numbers: Row) -> str:
    return ' class="number"' if head in numbers else ""


def _cell(head: str, cell: Any, numbers: Row) -> str:
    tone, text = cell if isinstance(cell, tuple) else ("", cell)
    shown = f'<span class="{tone}">{escape(text)}</span>' if tone else escape(text)
    # Allow breaks inside words only in cells with an overlong one: elsewhere browsers would break other words, too.
    kind = _class(head, numbers) or (' class="long"' if max(map(len, text.split()), default=0) > _LONGEST_WORD else "")
    return f'<td data-name="{escape(head)}"{kind}>{shown}</td>'


def shown_time(moment: datetime) -> str:
    """Format a time for people, to the minute."""
    return to_text(moment)[:16].replace("T", " ")
