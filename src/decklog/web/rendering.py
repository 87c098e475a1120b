"""HTML rendering: templates that escape everything, and formatting of times, money and status words."""

import gzip
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from importlib.resources import files
from shlex import quote as shell_word
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from decklog.core import display
from decklog.core.clock import from_text
from decklog.core.display import counted, dollars, revealed, sized, span, took
from decklog.web.site import PageView, SiteRequest

STATIC = files("decklog.web") / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}


@cache
def assets() -> dict[str, bytes]:
    """Load all static files by name."""
    found = {}
    for folder in ("", "vendor/"):
        for item in (STATIC / folder).iterdir() if folder else STATIC.iterdir():
            if item.is_file() and item.name.endswith(tuple(TYPES)):
                found[f"{folder}{item.name}"] = item.read_bytes()
    return found


@cache
def compressed_asset(name: str) -> bytes:
    """Compress a static file with gzip. Pages are not compressed: their length could leak a secret that they contain."""
    return gzip.compress(assets()[name], mtime=0)


@cache
def edition() -> str:
    """Return a digest of all static files. It is part of their address, so that browsers may cache them forever."""
    digests = [f"{name} {sha256(content).hexdigest()}" for name, content in sorted(assets().items())]
    return sha256("\n".join(digests).encode()).hexdigest()[:16]


def asset(name: str) -> str:
    return f"/static/{edition()}/{name}"


def moment(value: datetime | str) -> datetime:
    return (from_text(value) if isinstance(value, str) else value).astimezone(UTC)


def exact(value: datetime | str) -> str:
    """Format a time in UTC, independent of the reader's time zone."""
    return f"{moment(value):%Y-%m-%d %H:%M:%S} UTC"


def iso(value: datetime | str) -> str:
    return f"{moment(value):%Y-%m-%dT%H:%M:%SZ}"


def _time(value: datetime | str, now: datetime, kind: str, words: str) -> Markup:
    # Safe without escaping: only digits and fixed words.
    at = moment(value)
    text = at.isoformat(" ")[:19]
    said = f"{span(at - now if kind == 'left' else now - at)}{words}"
    return Markup(f'<time datetime="{text.replace(" ", "T")}Z" title="{text} UTC" data-{kind}>{said}</time>')


def ago(value: datetime | str, now: datetime) -> Markup:
    """Format the time since a moment; the page keeps it up to date."""
    return _time(value, now, "ago", " ago")


def age(value: datetime | str, now: datetime) -> Markup:
    return _time(value, now, "age", "")


def left(value: datetime | str, now: datetime) -> Markup:
    """Format the time until a moment. The page counts down and reloads at the end."""
    return _time(value, now, "left", "")


# Symbol, and colour as a class, by tone. Some words have their own symbol.
_MARKS = {
    display.NEED: ("needs-attention", "need"),
    display.BAD: ("failed", "fail"),
    display.WARN: ("paused", "hold"),
    display.HOLD: ("paused", "hold"),
    display.BUSY: ("running", "run"),
    display.GOOD: ("done", "done"),
    display.DIM: ("idle", "idle"),
}
_SYMBOLS = {"stalled": "stalled", "blocked": "blocked", **dict.fromkeys(("cancelled", "abandoned", "skipped"), "cancelled")}


def state_mark(word: str) -> tuple[str, str]:
    """Return the symbol and the colour of a status word; an unknown word gets a ring."""
    symbol, colour = _MARKS[display.TONES.get(word, display.DIM)]
    return _SYMBOLS.get(word, symbol), colour


def sign(word: str, prefix: str = "") -> Markup:
    """Render a status word with its symbol. `prefix` comes before the colour's class."""
    symbol, colour = state_mark(word)
    return Markup('<span class="s {}{}"><svg aria-hidden="true"><use href="#s-{}"/></svg>{}</span>').format(
        prefix, colour, symbol, revealed(word)
    )


def state_sign(word: str) -> Markup:
    """Render a status word as the first column of a list."""
    return sign(word, "state st-")


# A conductor claims tasks under the name of its machine and process.
_CONDUCTOR = re.compile(r"conductor-.+-\d+-\d+")


def agent_name(name: str) -> str:
    """Return the name of an agent as people know it: that of a conductor without its machine and process."""
    return "conductor" if _CONDUCTOR.fullmatch(name) else name


def doing(run: Any) -> str:
    """Describe who works on what, the outcome of an ended run, or the last message."""
    if run.ended_at is not None and run.summary:
        return str(run.summary)
    if not run.working_on:
        return f"{agent_name(run.last_by)}: {run.last_said}" if run.last_by else str(run.last_said)
    first = run.working_on[0]
    others = f" +{run.workers - 1}" if run.workers > 1 else ""
    return f"{agent_name(first['worker'])}{others}: {'lease ended' if first['lease_ended'] else first['stage'] or first['title']}"


def hour(value: datetime | str, now: datetime) -> str:
    """Format a time of day, with the date unless it is today."""
    at = moment(value)
    return f"{at:%H:%M} UTC" if at.date() == now.astimezone(UTC).date() else f"{at:%d %b %H:%M} UTC"


def passed(value: datetime | str, now: datetime) -> str:
    return span(now - moment(value))


def length(started: datetime, ended: datetime) -> str:
    """Format a duration; hours have their minutes."""
    minutes = int((ended - started) / timedelta(minutes=1))
    if minutes < 60 or minutes >= 2 * 24 * 60:
        return span(ended - started)
    return f"{minutes // 60} h {minutes % 60} min"


def segment(text: str) -> str:
    """Quote a name as part of a URL path."""
    return quote(text, safe="/~@")


def pretty_json(text: str) -> str:
    """Pretty-print JSON; return any other text unchanged."""
    if not text.startswith(("{", "[")):
        return text.removesuffix("\n")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text.removesuffix("\n")


def shown_lines(text: str) -> list[str]:
    """Return the subject of a decision as lines, with invisible characters made visible."""
    return [revealed(line, tabs=True) for line in pretty_json(text).split("\n")]


def bars(values: Sequence[int]) -> str:
    """Draw the non-zero values of a strip as vertical lines of one SVG path, 12 high and 3 apart."""
    most = max(values, default=0)
    return "".join([f"M{place * 3 + 1} 12V{12 - max(2, value * 12 // most)}" for place, value in enumerate(values) if value])


_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")


def plainly(value: Any) -> str:
    """Return a field of a record as people read it: a text without quotes, and a time to the second."""
    return _TIME.sub(r"\1 \2", value) if value and isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def grouped(digest: str) -> str:
    """Format the beginning of a digest in groups of four."""
    return " ".join(digest[start : start + 4] for start in range(0, 16, 4)) + " …"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def when(time: str) -> str:
    """Format a UTC timestamp as day and time: `16 Nov 11:02:03`."""
    return f"{int(time[8:10])} {_MONTHS[int(time[5:7]) - 1]} {time[11:19]}"


_FUNCTIONS: tuple[Callable[..., Any], ...] = (
    *(
        asset,
        exact,
        iso,
        ago,
        age,
        left,
        sign,
        state_sign,
        agent_name,
        doing,
        hour,
        when,
        moment,
        passed,
        length,
        segment,
        shown_lines,
        bars,
        as_json,
        plainly,
        grouped,
    ),
    *(dollars, counted, revealed, sized, took),
)


# An empty table cell.
_NOTHING = Markup('<span class="nothing">–</span>')


@cache
def environment() -> Environment:
    """Build the template environment: autoescaping is on, and undefined variables are errors."""
    made = Environment(
        loader=PackageLoader("decklog.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.globals |= {function.__name__: function for function in _FUNCTIONS} | {"shell_word": shell_word, "nothing": _NOTHING}
    return made


def page(request: SiteRequest | None, view: PageView, **more: Any) -> str:
    """Render a whole page."""
    base: dict[str, Any] = {"view": view, "title": view.title, "request": request, **view.shown, **more}
    return environment().get_template(view.template).render(base)
