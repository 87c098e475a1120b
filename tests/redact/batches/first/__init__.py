"""The first batch for measuring: written before the rules were mended, run once, and then used to mend them."""

from tests.redact.batches.first import harmless, secrets

__all__ = ["harmless", "secrets"]
