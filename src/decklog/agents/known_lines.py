"""Set of the transcript lines that were read per folder: a fork starts with copies of another session's lines."""

# Searching one page takes a microsecond for a history of some gigabytes.
_PAGES = 4096
_MARK_BYTES = 8


class KnownLines:
    """Compact set of line ids. A history has millions; a set of integers would need ten times the memory."""

    def __init__(self) -> None:
        self._pages = [bytearray() for _ in range(_PAGES)]

    def add(self, folder: str, uuid: str) -> bool:
        """Add a line of a folder; return whether it is new there."""
        number = hash((folder, uuid))
        page, mark = self._pages[number % _PAGES], number.to_bytes(_MARK_BYTES, "little", signed=True)
        if mark in page:
            return False
        page += mark
        return True
