"""Cheap key derivation for passwords in tests. The real one takes a tenth of a second per signature."""

from decklog.stores.approvals.trust import signatures

REAL_COST = signatures._SCRYPT

signatures._SCRYPT = (2**8, 8, 1)
