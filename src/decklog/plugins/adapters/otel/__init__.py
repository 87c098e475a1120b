"""OpenTelemetry: export runs as spans, and import spans of other programs as runs."""
