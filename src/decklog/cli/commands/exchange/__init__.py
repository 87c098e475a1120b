"""Data of other tools: imports, exports, sync and spans."""
