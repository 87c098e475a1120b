"""What an agent asks a person about: a question, or the exact content of a file."""

import os
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class ShortcutQuestion:
    """A question with what it is about; said twice in the same words about the same thing, it has the same key."""

    def __init__(self, question: str, about: bytes | None, options: list[str] | None, *, reads_files: bool) -> None:
        self._question = question
        self._options = options
        self._subject: str | None = None
        whole = question.encode(errors="surrogateescape") if about is None else about
        self._about = self._content(whole) if reads_files and about is not None else whole

    def _content(self, about: bytes) -> bytes:
        """Return the content of the named file, or the text if it names none."""
        if not about or b"\0" in about or not os.path.isfile(about):
            return about
        self._subject = os.fsdecode(about)
        with open(about, "rb") as file:
            return file.read()

    def key(self, about_task: str) -> str:
        """Name the question within its run."""
        parts = (self._question, *(self._options or ()))
        digest = sha256("\0".join(parts).encode(errors="surrogateescape") + b"\0" + self._about).hexdigest()
        return f"ask:{about_task}:{digest[:16]}"

    def arguments(self) -> "dict[str, Any]":
        """Return the subject of the question as approvals expect it: text if it is text."""
        try:
            about: str | bytes = self._about.decode()
        except UnicodeDecodeError:
            about = self._about
        return {
            "about": about,
            "subject": self._subject,
            "payload": {"options": self._options} if self._options else None,
        }
