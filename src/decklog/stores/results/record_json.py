"""A record as JSON."""

from typing import Any

# What `as_dict` of a record returns.
RecordJson = dict[str, Any]
