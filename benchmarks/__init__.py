"""Measurements: each of one thing, beside a peer, in one run."""
