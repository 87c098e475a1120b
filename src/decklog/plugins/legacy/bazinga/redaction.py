"""Redaction under bazinga's names; the rules are Decklog's own."""

from decklog import redaction
from decklog.redaction.rules import shipped_rules

SECRET_PATTERNS = [(rule.pattern, f"[redacted:{rule.label}]") for rule in shipped_rules()]


def scan_and_redact(text: str) -> tuple[str, bool]:
    """Return a text without its secrets, and whether there were any."""
    return redaction.scan(text)
