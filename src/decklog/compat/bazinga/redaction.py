"""Redaction under bazinga's names; the rules are Decklog's own."""

from decklog import redact

SECRET_PATTERNS = [(rule.pattern, f"[redacted:{rule.name}]") for rule in redact.RULES]


def scan_and_redact(text: str) -> tuple[str, bool]:
    """Give a text without its secrets, and say whether there were any."""
    return redact.scan(text)
