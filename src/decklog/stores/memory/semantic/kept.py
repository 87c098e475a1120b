"""Where the model's files are kept, what they have to be, and whether they are that."""

import hashlib
import json
import os
from dataclasses import dataclass

NAME = "all-MiniLM-L6-v2"
LICENCE = "Apache-2.0"
WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
# What was found right once is not read again until it was written to: it names each file's length and last change.
CHECKED = "checked.json"
_MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Pin:
    """A file that is taken only if it is exactly this one."""

    name: str
    bytes: int
    sha256: str


PINS = (
    Pin(WEIGHTS, 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    Pin(VOCABULARY, 231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
)


def folder() -> str:
    """Return the folder of the model; `DECKLOG_MODELS` names another place than the user's data."""
    home = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(os.environ.get("DECKLOG_MODELS") or os.path.join(home, "decklog", "models"), NAME)


def is_there(place: str) -> bool:
    """Return whether anything of a model is in a folder."""
    return os.path.isdir(place)


def flaw(place: str, pins: "tuple[Pin, ...]" = PINS) -> str | None:
    """Return what is missing or damaged in a folder; whatever was written to since it was found right is read again."""
    try:
        found = {pin.name: _state(place, pin) for pin in pins}
    except OSError as missing:
        return f"{os.path.basename(missing.filename)} is not there"
    if found == _checked(place):
        return None
    problem = damage(place, pins)
    if problem is None:
        note_checked(place, pins)
    return problem


def damage(place: str, pins: "tuple[Pin, ...]" = PINS) -> str | None:
    """Return which file is not what it has to be, by reading all of them."""
    for pin in pins:
        path = os.path.join(place, pin.name)
        try:
            length = os.stat(path).st_size
            if length != pin.bytes:
                return f"{pin.name} has {length:,} bytes instead of {pin.bytes:,}"
            found = digest(path)
        except OSError as problem:
            return f"{pin.name} can't be read: {problem.strerror}"
        if found != pin.sha256:
            return f"{pin.name} is not the file that was taken: its SHA-256 is {found}"
    return None


def note_checked(place: str, pins: "tuple[Pin, ...]" = PINS) -> None:
    """Note that the files are right as they are now; where nothing can be written, they are read again the next time."""
    from contextlib import suppress

    with suppress(OSError), open(os.path.join(place, CHECKED), "w", encoding="utf-8") as file:
        json.dump({pin.name: _state(place, pin) for pin in pins}, file)


def _state(place: str, pin: Pin) -> list[object]:
    found = os.stat(os.path.join(place, pin.name))
    return [pin.sha256, found.st_size, found.st_mtime_ns]


def _checked(place: str) -> object:
    try:
        with open(os.path.join(place, CHECKED), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    made = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(_MEGABYTE):
            made.update(part)
    return made.hexdigest()
