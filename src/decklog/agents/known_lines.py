"""Which lines of a folder's transcripts were read before: a fork begins with those of the session it was made of."""

# Looking through a page takes a microsecond for a history of some gigabytes.
_PAGES = 4096
_MARK_BYTES = 8


class KnownLines:
    """Knows lines by their ids. A set of numbers would take ten times the room, and a history has millions of them."""

    def __init__(self) -> None:
        self._pages = [bytearray() for _ in range(_PAGES)]

    def add(self, folder: str, uuid: str) -> bool:
        """Remember a line of a folder; say whether it is new there."""
        number = hash((folder, uuid))
        page, mark = self._pages[number % _PAGES], number.to_bytes(_MARK_BYTES, "little", signed=True)
        if mark in page:
            return False
        page += mark
        return True
