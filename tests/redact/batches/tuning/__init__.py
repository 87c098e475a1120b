"""The batch that the rules are mended by."""

from tests.redact.batches.tuning import harmless, secrets

__all__ = ["harmless", "secrets"]
