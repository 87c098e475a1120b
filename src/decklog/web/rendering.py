"""Pages as text: templates that escape whatever they are given, and how times, money and words are written in them."""

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from shlex import quote as shell_word
from types import BuiltinMethodType, FunctionType
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.runtime import Context
from markupsafe import Markup

from decklog.core.characters import revealed
from decklog.core.clock import from_text
from decklog.core.figures import counted, dollars, sized, span, took
from decklog.web.site import PageView, SiteRequest

STATIC = files("decklog.web") / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_SLUGS = {"needs you": "need", "quiet": "fail", "running": "run", "done": "done", "failed": "fail", "held": "hold"}


@cache
def assets() -> dict[str, bytes]:
    """Read every file that is served as it is, by its name."""
    found = {}
    for folder in ("", "vendor/"):
        for item in (STATIC / folder).iterdir() if folder else STATIC.iterdir():
            if item.is_file() and item.name.endswith(tuple(TYPES)):
                found[f"{folder}{item.name}"] = item.read_bytes()
    return found


@cache
def edition() -> str:
    """Name what all of these files are: it is part of their address, so that a browser may keep them for ever."""
    digests = [f"{name} {sha256(content).hexdigest()}" for name, content in sorted(assets().items())]
    return sha256("\n".join(digests).encode()).hexdigest()[:16]


def asset(name: str) -> str:
    return f"/static/{edition()}/{name}"


def moment(value: datetime | str) -> datetime:
    return (from_text(value) if isinstance(value, str) else value).astimezone(UTC)


def exact(value: datetime | str) -> str:
    """Write a time so that it means the same everywhere."""
    return f"{moment(value):%Y-%m-%d %H:%M:%S} UTC"


def iso(value: datetime | str) -> str:
    return f"{moment(value):%Y-%m-%dT%H:%M:%SZ}"


def _time(value: datetime | str, now: datetime, kind: str, words: str) -> Markup:
    # Nothing in it is anybody's text: digits and words of ours.
    at = moment(value)
    told = at.isoformat(" ")[:19]
    said = f"{span(at - now if kind == 'left' else now - at)}{words}"
    return Markup(f'<time datetime="{told.replace(" ", "T")}Z" title="{told} UTC" data-{kind}>{said}</time>')


def ago(value: datetime | str, now: datetime) -> Markup:
    """Write how long ago something was; the page keeps it up to date."""
    return _time(value, now, "ago", " ago")


def age(value: datetime | str, now: datetime) -> Markup:
    return _time(value, now, "age", "")


def left(value: datetime | str, now: datetime) -> Markup:
    """Write how long it is until something; the page counts down, and looks again when the time is over."""
    return _time(value, now, "left", "")


# What the words for the status of a run are called on pages.
_SHOWN_WORDS = {"quiet": "stalled", "held": "on hold"}


def shown_word(word: str) -> str:
    return _SHOWN_WORDS.get(word, word)


@cache
def sign(word: str) -> Markup:
    """Write the word for the status of a run or a task, with its sign."""
    drawn = Markup('<svg aria-hidden="true"><use href="#s-{}"/></svg>').format(word.replace(" ", "-"))
    return Markup('<span class="s {}">{}{}</span>').format(slug(word), drawn, shown_word(word))


# Which shape and shade the word has for where a task, a criterion, a phase or a check stands; any other is a ring.
_STATES = {
    **dict.fromkeys(("running", "in progress", "verifying"), ("running", "running")),
    **dict.fromkeys(("done", "completed", "met", "pass", "landed", "whole"), ("done", "done")),
    **dict.fromkeys(("failed", "fail", "error", "block", "not whole"), ("failed", "blocked")),
    **dict.fromkeys(
        ("waiting", "waits", "paused", "stale", "flaky", "unproven", "request-changes", "not verified"), ("held", "paused")
    ),
    "blocked": ("held", "blocked"),
    **dict.fromkeys(("abandoned", "skipped"), ("cancelled", "idle")),
}


def state_mark(word: str) -> tuple[str, str]:
    """Return the shape and the shade for where something stands."""
    return _STATES.get(word, ("idle", "idle"))


# Most words are ours; a pass of the gate may be called anything.
@lru_cache(maxsize=64)
def state_sign(word: str) -> Markup:
    """Write the word for where a part of a run stands, with its sign."""
    shape, shade = state_mark(word)
    drawn = Markup('<svg aria-hidden="true"><use href="#s-{}"/></svg>').format(shape)
    return Markup('<span class="s state st-{}">{}{}</span>').format(shade, drawn, revealed(word))


def hour(value: datetime | str, now: datetime) -> str:
    """Write when something is, with the day only where it is another one."""
    at = moment(value)
    return f"{at:%H:%M} UTC" if at.date() == now.astimezone(UTC).date() else f"{at:%d %b %H:%M} UTC"


def passed(value: datetime | str, now: datetime) -> str:
    return span(now - moment(value))


def length(started: datetime, ended: datetime) -> str:
    """Write how long something took, in two units where that says more."""
    minutes = int((ended - started) / timedelta(minutes=1))
    if minutes < 60 or minutes >= 2 * 24 * 60:
        return span(ended - started)
    return f"{minutes // 60} h {minutes % 60} min"


# Most names need nothing: to look takes a tenth of what it takes to write them anew.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.~@/-]*")


def segment(text: str) -> str:
    """Write a name as part of a path."""
    return text if _PLAIN_NAME.fullmatch(text) else quote(text, safe="/~@")


# Printable ASCII without the signs that mean something in markup: to look takes less than to write a text anew.
_PLAIN_TEXT = re.compile("[ !#-%(-;=?-~]*")


def text_of(said: str) -> str:
    """Write somebody's text outside of a template: nothing in it is markup, and whatever nobody would see is written out."""
    return said if _PLAIN_TEXT.fullmatch(said) else escape(revealed(said))


# Where a table has nothing to say.
NOTHING = '<span class="nothing">–</span>'


def name_of(text: str) -> str:
    """Write an id inside of an attribute, as it is: whoever looks for a row looks for just this."""
    return text if _PLAIN_TEXT.fullmatch(text) else escape(text)


def slug(word: str) -> str:
    return _SLUGS.get(word, "idle")


def laid_out(text: str) -> str:
    """Lay JSON out, and leave any other text as it is."""
    if not text.startswith(("{", "[")):
        return text.removesuffix("\n")
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text.removesuffix("\n")


def shown_lines(text: str) -> list[str]:
    """Return what is decided on line by line, with everything written out that nobody would see."""
    return [revealed(line, tabs=True) for line in laid_out(text).split("\n")]


def bars(values: Sequence[int]) -> str:
    """Draw the steps of a strip that have anything, as upright lines of one path, 12 high and 3 apart."""
    most = max(values, default=0)
    return "".join([f"M{place * 3 + 1} 12V{12 - max(2, value * 12 // most)}" for place, value in enumerate(values) if value])


def as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def grouped(digest: str) -> str:
    """Write the beginning of a digest in groups of four."""
    return " ".join(digest[start : start + 4] for start in range(0, 16, 4)) + " …"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def when(time: str) -> str:
    """Write the day and the time of a text of UTC: `16 Nov 11:02:03`."""
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
        shown_word,
        state_sign,
        hour,
        when,
        moment,
        passed,
        length,
        segment,
        slug,
        shown_lines,
        bars,
        as_json,
        grouped,
    ),
    *(dollars, counted, revealed, sized, took),
)


_FUNCTION_KINDS = frozenset((FunctionType, BuiltinMethodType, type(sign)))


class _Plainly(Context):
    """Calls functions as they are. Each is looked over otherwise for whether it wants the template's surroundings: none does."""

    def call(self, called: Any, /, *given: Any, _loop_vars: Any = None, _block_vars: Any = None, **named: Any) -> Any:
        if type(called) in _FUNCTION_KINDS:
            return called(*given, **named)
        return super().call(called, *given, _loop_vars=_loop_vars, _block_vars=_block_vars, **named)


@cache
def environment() -> Environment:
    """Make the templates' surroundings: everything is escaped, and what is not given is an error."""
    made = Environment(
        loader=PackageLoader("decklog.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.context_class = _Plainly
    made.globals |= {function.__name__: function for function in _FUNCTIONS} | {"shell_word": shell_word}
    return made


def page(asked: SiteRequest | None, view: PageView, **more: Any) -> str:
    """Write a whole page."""
    base: dict[str, Any] = {"view": view, "title": view.title, "asked": asked, **view.shown, **more}
    return environment().get_template(view.template).render(base)
