"""Prove a fix by a test, which runs three times each with and without the fix under a probe."""
