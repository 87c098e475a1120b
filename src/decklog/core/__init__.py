"""Building blocks without a room of their own: ids, time, errors, digests, fork safety."""
