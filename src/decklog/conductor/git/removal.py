"""Removes what nobody needs any more: at once, or moved aside in one step and removed when there is time for it.

A file system may be slow to make files for a while after many were removed (ext4 without a journal passes over every inode that
was freed within the last minute), and a piece of work should not wait until the places of the one before it are gone.
"""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from decklog.conductor import kill_points
from decklog.conductor.git import places
from decklog.conductor.git.places import Workspace

# So much is moved aside at the most: so many folders, and no more than half of the room that was there.
MOST_ASIDE = 1000


class Removal:
    """Has folders gone from where they are. Inside of `later` they are only moved, and removed by `finish` and at its end."""

    def __init__(self) -> None:
        self._aside: Path | None = None
        self._numbers = count(1)
        self._left = 0
        self._least_free = 0
        self._finishing = threading.Lock()
        # Why something that was moved aside is still there: whoever cleans up later may have better luck.
        self.trouble: str | None = None

    @contextmanager
    def later(self, aside: Path) -> Iterator[None]:
        """Move what is to be removed into a folder that is nobody else's, on the same disk, for as long as the block lasts."""
        aside.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._least_free = shutil.disk_usage(aside.parent).free // 2
        self._aside = aside
        try:
            yield
        finally:
            self._aside = None
            self.finish(aside)

    @property
    def is_full(self) -> bool:
        """Whether no more can be moved aside."""
        aside = self._aside
        return aside is not None and (self._left >= MOST_ASIDE or shutil.disk_usage(aside.parent).free < self._least_free)

    def take(self, path: Path) -> None:
        """Have a folder, or a file, gone from where it is."""
        aside = self._aside
        if aside is None:
            _remove(path)
            return
        is_full = self.is_full
        moved = aside / str(next(self._numbers))
        aside.mkdir(mode=0o700, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            # To be moved a folder must be writable itself, and this one may have been an agent's.
            path.chmod(0o700)
        path.rename(moved)
        kill_points.reached("place:aside")
        if is_full:
            _remove(moved)
        else:
            self._left += 1

    def finish(self, aside: Path | None = None) -> None:
        """Remove what was moved aside."""
        aside = aside or self._aside
        with self._finishing:
            if aside is None or not aside.is_dir():
                return
            for path in aside.iterdir():
                try:
                    _remove(path)
                    self._left -= 1
                except OSError as problem:
                    self.trouble = f"{path} can't be removed: {problem}"
            if self._aside is None and not any(aside.iterdir()):
                aside.rmdir()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        places.remove(Workspace(path, ""))
    else:
        path.unlink(missing_ok=True)
