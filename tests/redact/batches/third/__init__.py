"""The third batch, written by a stranger to the rules: its templates and the shapes of its values, drawn anew from a seed."""

from tests.redact.batches.third import harmless, secrets

__all__ = ["harmless", "secrets"]
