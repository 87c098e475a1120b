"""Approvals, messages, feedback and trust."""
