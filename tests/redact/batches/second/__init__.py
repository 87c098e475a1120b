"""The second batch for measuring: written after the first had been used; its first run is what counts."""

from tests.redact.batches.second import harmless, secrets

__all__ = ["harmless", "secrets"]
