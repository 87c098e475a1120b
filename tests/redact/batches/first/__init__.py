"""The first batch for measuring: written without looking at the rules, run once, and then used to mend them."""

from tests.redact.batches.first import harmless, secrets

__all__ = ["harmless", "secrets"]
