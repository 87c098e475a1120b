"""SHA-256, without loading a cryptographic library for the few digests of a short call."""

import sys
from typing import TYPE_CHECKING

try:
    # By version: to look for a module that is not there takes longer than to load the one that is.
    if sys.version_info >= (3, 12):
        from _sha2 import sha256 as _plain  # type: ignore[import-not-found]
    else:
        from _sha256 import sha256 as _plain  # type: ignore[import-not-found]
except ImportError:
    from hashlib import sha256 as _plain

if TYPE_CHECKING:
    from hashlib import _Hash

# The library is twice as fast on short texts and ten times on long ones, and takes as long to load as a thousand short digests.
_LONG = 65_536


class _Used:
    """How many short digests are made before the library is loaded."""

    left = 500


def sha256(data: bytes) -> "_Hash":
    """Hash some bytes; whoever asks often asks by the module's name, and has the library itself once it is loaded."""
    if len(data) < _LONG and _Used.left:
        _Used.left -= 1
        found: _Hash = _plain(data)
        return found
    from hashlib import sha256 as loaded

    globals()["sha256"] = loaded
    return loaded(data)
