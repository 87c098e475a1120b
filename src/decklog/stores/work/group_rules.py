"""What a group's id and its specialisation paths may look like; for every module that takes one."""

import posixpath
import re

from decklog.errors import Invalid

LONGEST_ID = 64
RESERVED_IDS = frozenset({"global", "session", "all", "default"})
SPECIALIZATIONS = "bazinga/templates/specializations/"

_ID = re.compile(r"[A-Za-z0-9_-]+")
_PATH = re.compile(r"[A-Za-z0-9/_.-]+")
_SHORT_FORMS = (SPECIALIZATIONS, "templates/specializations/", "specializations/")


def check_group_id(text: object) -> str:
    """Check the id of a group or a scope: 1 to 64 letters, digits, underscores and hyphens."""
    if text is None:
        raise Invalid("a group id can't be None", field="group_id")
    if not isinstance(text, str):
        raise Invalid(f"a group id must be a text, got {type(text).__name__}", field="group_id")
    if not text.strip():
        raise Invalid("a group id can't be empty", field="group_id")
    if len(text) > LONGEST_ID:
        raise Invalid(f"a group id has at most {LONGEST_ID} characters, this one has {len(text)}", field="group_id")
    if not _ID.fullmatch(text):
        raise Invalid(f"group id {text!r} may have only letters, digits, underscores and hyphens", field="group_id")
    return text


def check_task_group_id(text: object) -> str:
    """Check the id of a task group, which may not be one of the words that mean more than one group."""
    group_id = check_group_id(text)
    if group_id.lower() in RESERVED_IDS:
        raise Invalid(
            f"{group_id!r} is a reserved identifier and can't name a group",
            hint=f"Choose another id; these are reserved in any case: {', '.join(sorted(RESERVED_IDS))}",
            field="group_id",
        )
    return group_id


def normal_specialization(path: object) -> str:
    """Give a specialisation's template path in its one full form; refuse what leaves the templates' folder.

    `specializations/…`, `templates/specializations/…` and bare names mean the same file as the full path.
    """
    if not isinstance(path, str) or not path.strip():
        raise Invalid(f"a specialisation is the path of a template; got {path!r}", field="specializations")
    if not _PATH.fullmatch(path):
        raise Invalid(f"specialisation {path!r} may have only letters, digits and / _ . -", field="specializations")
    if ".." in path or path.startswith("/"):
        raise Invalid(f"specialisation {path!r} leads out of {SPECIALIZATIONS}", field="specializations")
    inner = posixpath.normpath(path) + ("/" if path.endswith("/") else "")
    for prefix in _SHORT_FORMS:
        if inner.startswith(prefix):
            inner = inner.removeprefix(prefix)
            break
    inner = inner.strip("/")
    if inner in ("", "."):
        raise Invalid(f"specialisation {path!r} names the folder and no template in it", field="specializations")
    return SPECIALIZATIONS + inner
