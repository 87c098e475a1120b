"""Objects that git does not have yet, in a temporary folder until they are kept.

Git writes an object only if neither the folder nor the repository has it. So one call shows which contents are new.
"""

import os
import shutil
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

    from decklog.provenance.git import GitRepository

# Git removes what a killed process leaves under this name.
_PREFIX = "tmp_objdir-decklog-"


class NewObjects:
    """Writes blobs, and knows which of them are new. What is not kept is removed with the folder."""

    def __init__(self, repo: "GitRepository") -> None:
        self._repo = repo
        self._folder = os.path.join(repo.objects, f"{_PREFIX}{os.urandom(8).hex()}")

    def __enter__(self) -> Self:
        os.mkdir(self._folder, 0o700)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder)

    def of_files(self, paths: "Sequence[str]") -> dict[str, str]:
        """Return the blobs of files as `git add` would make them."""
        return dict(zip(paths, self._repo.hash_files(paths, objects=self._folder), strict=True))

    def of_text(self, path: str | None, text: bytes) -> str:
        """Return the blob of a text, as `git add` would make it of a file at a path if there is one."""
        words = ("hash-object", "-w", "--stdin", *([f"--path={path}"] if path is not None else []))
        return self._repo.call(*words, given=text, objects=self._folder).decode().strip()

    def is_new(self, blob: str) -> bool:
        """Return whether git did not have a blob before it was written here."""
        return os.path.exists(os.path.join(self._folder, _place(blob)))

    def keep(self, blob: str) -> None:
        """Move a new blob to the objects of the repository."""
        place = os.path.join(self._repo.objects, _place(blob))
        folder = os.path.dirname(place)
        if not os.path.isdir(folder):
            os.makedirs(folder, exist_ok=True)
            shutil.copymode(self._repo.objects, folder)
        os.replace(os.path.join(self._folder, _place(blob)), place)


def _place(blob: str) -> str:
    return os.path.join(blob[:2], blob[2:])
