"""Measurements, each beside a floor or a peer in the same run, as a ratio: machines differ and are noisy, ratios less so."""
