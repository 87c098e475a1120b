"""The second batch for measuring: written after the first had been used, and run once."""

from tests.redact.batches.second import harmless, secrets

__all__ = ["harmless", "secrets"]
