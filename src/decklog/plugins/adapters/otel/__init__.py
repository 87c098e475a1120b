"""OpenTelemetry: runs sent as spans, and spans of other programs taken in as runs."""
