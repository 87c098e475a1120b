"""Saved views: addresses of filtered lists under a name, shared by everybody who uses the log."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from decklog.core.errors import Invalid
from decklog.web.actions.forms import actor_of, check_token, signed, token_of
from decklog.web.site import PageView, SiteRequest, command

SAVE, REMOVE = "save-view", "remove-view"
# The stream for entries without a run, and the subtypes of the entries.
STREAM, SAVED, REMOVED = "@desk", "view.saved", "view.removed"
PLACES = ("/now", "/inbox", "/runs", "/tasks", "/spend", "/search", "/memory")
MOST, LONGEST_NAME, LONGEST_ADDRESS = 200, 80, 1000


@dataclass(frozen=True)
class SavedView:
    """A saved view: its name, address, author and time."""

    name: str
    path: str
    by: str | None
    at: datetime

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "at": self.at.isoformat()}


def read(asked: SiteRequest, **answer: Any) -> PageView:
    """Load all views, with the form for a new one."""
    views = saved_views(asked)
    shown: dict[str, Any] = {
        "views": views,
        "token": asked.session.form_token(token_of(SAVE), ""),
        "tokens": {view.name: asked.session.form_token(token_of(REMOVE), view.name) for view in views},
        "typed": {"name": "", "path": (asked.word("save") or "")[:LONGEST_ADDRESS]},
        "problem": None,
    }
    said = command("journal", "find", STREAM, "--subtype", SAVED)
    return PageView("work/views.html", "Saved views", said, views, shown | answer, place="more")


def saved_views(asked: SiteRequest) -> list[SavedView]:
    """List the saved views that were not removed, by name. Entries with an invalid address are left out."""
    journal = asked.log.journal
    entries = [*journal.find(STREAM, subtype=SAVED, limit=MOST), *journal.find(STREAM, subtype=REMOVED, limit=MOST)]
    known: dict[str, SavedView | None] = {}
    for entry in sorted(entries, key=lambda one: one.seq):
        payload = entry.payload if isinstance(entry.payload, dict) else {}
        name, path = payload.get("name"), checked_address(payload.get("path"))
        if not isinstance(name, str) or not _is_name(name):
            continue
        known[name] = SavedView(name, path, entry.agent, entry.at) if entry.subtype == SAVED and path else None
    return sorted((view for view in known.values() if view is not None), key=lambda view: view.name.lower())


def checked_address(text: object) -> str | None:
    """Return the normalized address of a list of this dashboard; None for any other address."""
    if not isinstance(text, str) or len(text) > LONGEST_ADDRESS or not text.isprintable():
        return None
    try:
        parts = urlsplit(text)
        pairs = parse_qsl(parts.query, max_num_fields=20)
    except ValueError:
        return None
    if parts.scheme or parts.netloc or parts.path not in PLACES:
        return None
    return parts.path + (f"?{urlencode(pairs)}" if pairs else "")


def _is_name(name: str) -> bool:
    return bool(name.strip()) and len(name) <= LONGEST_NAME and name.isprintable()


def save(asked: SiteRequest) -> PageView | str:
    """Save a view under the name of the form. It replaces a view with the same name."""
    check_token(asked, SAVE, "")
    name, given = asked.form.get("name", "").strip(), asked.form.get("path", "").strip()
    path = checked_address(given)
    if not _is_name(name) or path is None:
        wrong = (
            "an address of a list, such as /runs?status=running" if path is None else f"a name of 1 to {LONGEST_NAME} characters"
        )
        problem = Invalid(f"a view needs {wrong}", field="path" if path is None else "name")
        view = read(asked, problem=problem, typed={"name": name, "path": given})
        return PageView(**{**vars(view), "status": 400})
    _write(asked, SAVED, {"name": name, "path": path})
    return "/views"


def remove(asked: SiteRequest) -> PageView | str:
    """Remove the view that a form names."""
    name = asked.form.get("name", "")
    check_token(asked, REMOVE, name)
    _write(asked, REMOVED, {"name": name})
    return "/views"


def _write(asked: SiteRequest, subtype: str, payload: dict[str, str]) -> None:
    with signed(asked, is_needed=False):
        asked.log.journal.append(
            STREAM, f"{actor_of(asked)}: {payload['name']}", kind="event", subtype=subtype, payload=dict(payload)
        )
