"""Keys are made of the passwords of tests at little cost: each log says itself what that is.

The real one is a tenth of a second for each proof, which is all that most tests with a password would do.
"""

from decklog.stores.approvals.trust import signatures

REAL_COST = signatures._SCRYPT

signatures._SCRYPT = (2**8, 8, 1)
