"""Measurements, each compared with a baseline or a peer in the same run, as a ratio: machines differ more than ratios."""
