"""Check, redact and encode values for columns."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import Enum
from hashlib import scrypt
from typing import Any

from decklog import redaction
from decklog.core.clock import to_text
from decklog.core.errors import Invalid, TooLarge
from decklog.core.ids import SHORTEST_ID, is_ours, is_theirs, without_theirs

DEFAULT_LIMIT_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 200
# An escaped NUL, but not an escaped backslash before the letters u0000.
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_NAME_LENGTH = 64
_MAX_CLEAN_NAMES = 4096
_SHORT_JSON = 2048
# Columns not worth caching.
_UNCACHED_COLUMNS = frozenset({"body", "key", "title", "objective", "summary"})
# Idempotency keys must stay distinct after redaction.
_KEY = "key"


def _fingerprint(key: str) -> str:
    """Return a slow hash that keeps keys with secrets distinct and can't be guessed by brute force."""
    return scrypt(key.encode(), salt=b"decklog key", n=2**12, r=8, p=1, dklen=6).hex()


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False)


def to_json(value: Any) -> str:
    """Write a value as canonical JSON: sorted keys, no blanks, text as it is."""
    try:
        text = _encoder.encode(value)
    except RecursionError:
        raise Invalid(f"this JSON value is nested too deeply (more than {MAX_DEPTH} levels); flatten it") from None
    except (TypeError, ValueError) as problem:
        raise Invalid(f"this value can't be written as JSON: {problem}") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise Invalid(f"this JSON value is nested too deeply (more than {MAX_DEPTH} levels); flatten it")
    return text


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [
            child
            for parent in level
            if isinstance(parent, (dict, list, tuple))
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
    return depth


from_json = json.loads


class Values:
    """Converts Python values to column values: checks and redacts them."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        # Ids and names known to be clean.
        self._clean: set[str] = set()
        # Texts and JSON values of the current batch that are clean. A value counts once: its owner may change it afterwards.
        self._clean_batch: set[str] = set()
        self._clean_json: dict[int, Any] = {}

    def bind(self, parameters: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """Return parameters as column values, and whether anything was redacted."""
        bound = dict(parameters)
        return bound, self.bind_into(bound, parameters)

    def bind_into(self, bound: dict[str, Any], parameters: Mapping[str, Any]) -> bool:
        """Replace the values in `bound` that need conversion; return whether anything was redacted."""
        redacted = False
        clean, page = self._clean, self._clean_batch
        for name, value in parameters.items():
            if value is None or (kind := type(value)) is int or (kind is str and (value in page or value in clean)):
                continue
            if kind is datetime:
                bound[name] = to_text(value) if value.tzinfo is UTC else self._encode_time(name, value)
                continue
            if isinstance(value, Enum):
                bound[name] = value._value_
                continue
            bind = self._new_text if kind is str else self.bind_json if kind is dict or kind is list else self.bind_value
            bound[name], changed = bind(name, value)
            redacted = redacted or changed
        return redacted

    def bind_value(self, name: str, value: Any) -> tuple[Any, bool]:
        kind = type(value)
        if kind is str:
            return self.bind_text(name, value)
        if value is None or kind is int:
            return value, False
        if isinstance(value, Enum):
            return value._value_, False
        if isinstance(value, datetime):
            return self._encode_time(name, value), False
        if kind is bool:
            return int(value), False
        if isinstance(value, bytes):
            self._check_size(name, len(value))
            return value, False
        if isinstance(value, (dict, list, tuple)):
            return self.bind_json(name, value)
        if kind is float:
            if value != value or value in (float("inf"), float("-inf")):
                raise Invalid(f"{name} is {value}, which is not a number a record can hold", field=name)
            return value, False
        raise Invalid(f"{name} is a {kind.__name__}, which a record can't hold", field=name)

    def bind_text(self, name: str, value: str) -> tuple[str, bool]:
        """Check and redact one text."""
        if type(value) is not str:
            value = str.__str__(value)  # a member of an enumeration is kept as its plain text
        return (value, False) if value in self._clean_batch or value in self._clean else self._new_text(name, value)

    def _new_text(self, name: str, value: str) -> tuple[str, bool]:
        """Check and redact a text that is not in a cache."""
        if len(value) >= SHORTEST_ID and " " not in value:  # sentences are no ids
            if is_ours(value):
                self.mark_clean(value)
                return value, False
            if is_theirs(value):
                return value, False
        if not value.isascii():
            self._check_unicode(name, value)
        if "\x00" in value:
            raise Invalid(f"{name} contains a NUL byte; remove it or send it as base64", field=name)
        if len(value) > self.limit_bytes // 4:
            self._check_size(name, len(value.encode()))
        clean, changed = redaction.scan(value)
        if changed and name == _KEY:
            clean = f"{clean}~{_fingerprint(value)}"
        if changed:
            return clean, True
        if len(value) <= _NAME_LENGTH and name not in _UNCACHED_COLUMNS:
            self.mark_clean(value)
        return value, False

    @contextmanager
    def scan_batch(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Scan the values of many rows at once. Clean ones are not scanned again when the rows are bound in the block."""
        try:
            if rows:
                self._scan_rows(rows)
            yield
        finally:
            # The owners of JSON values may change them from now on.
            self._clean_json = {}

    def _scan_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        texts: set[str] = set()
        held: list[tuple[Any, list[str]]] = []
        for row in rows:
            for value in row.values():
                if (kind := type(value)) is str:
                    texts.add(value)
                elif (kind is dict or kind is list) and value and (strings := redaction.json_strings(value)) is not None:
                    held.append((value, strings))
                    texts.update(strings)
        self._clean_batch, self._clean_json = set(), {}
        known = texts & self._clean
        # Random ids are all different: scanning them would fill the caches of the rules.
        known.update([text for text in texts if len(text) >= SHORTEST_ID and is_theirs(text)])
        most = self.limit_bytes // 4
        left = [
            text
            for text in texts - known
            if (text.isascii() and "\x00" not in text and len(text) <= most) or self._is_storable(text)
        ]
        self._clean_batch = redaction.clean_texts(left) | known
        self._clean_json = {id(value): value for value, strings in held if self._clean_batch.issuperset(strings)}

    def clean_texts(self, texts: set[str]) -> set[str]:
        """Return the texts without secrets."""
        known = texts & self._clean_batch
        return known | redaction.clean_texts(texts - known)

    def _is_storable(self, text: str) -> bool:
        """Return whether both engines can store a text."""
        if len(text) > self.limit_bytes // 4 or "\x00" in text:
            return False
        try:
            return text.isascii() or bool(text.encode())
        except UnicodeEncodeError:
            return False

    def mark_clean(self, name: str) -> None:
        """Cache a short text as clean."""
        if len(self._clean) >= _MAX_CLEAN_NAMES:
            self._clean.clear()
        self._clean.add(name)

    def bind_json(self, name: str, value: Any) -> tuple[str, bool]:
        """Check and redact one JSON value: its strings are redacted, never its text."""
        if not value and isinstance(value, (list, dict)):
            # Most values are empty; do not load the redactor for them.
            return ("[]" if isinstance(value, list) else "{}"), False
        text = to_json(value)
        if "\\u0000" in text and _NUL.search(text):
            raise Invalid(f"{name} contains a NUL byte; remove it or send it as base64", field=name)
        if not text.isascii():
            self._check_unicode(name, text)
        if len(text) > self.limit_bytes // 4:
            self._check_size(name, len(text.encode()))
        if self._clean_json.pop(id(value), None) is value:
            return text, False
        # Except for ids, most small values repeat.
        known = without_theirs(text) if len(text) <= _SHORT_JSON else text
        if known in self._clean:
            return text, False
        clean, changed = redaction.scan_json(value)
        if changed:
            return to_json(clean), True
        if len(known) <= _NAME_LENGTH:
            self.mark_clean(known)
        return text, False

    def _encode_time(self, name: str, value: datetime) -> str:
        try:
            return to_text(value)
        except ValueError as problem:
            raise Invalid(f"{name}: {problem}", field=name) from None

    def _check_unicode(self, name: str, value: str) -> None:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Invalid(
                f"{name} contains half of a surrogate pair, which is not text; decode it with errors='replace'",
                field=name,
            ) from None

    def _check_size(self, name: str, size: int) -> None:
        if size > self.limit_bytes:
            raise TooLarge(
                f"{name} has {size} bytes and the limit is {self.limit_bytes}",
                hint="Store it as an artifact's file, or open the log with a higher limit_bytes.",
                field=name,
                size=size,
                limit=self.limit_bytes,
            )
