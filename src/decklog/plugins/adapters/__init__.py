"""Record agent loops and frameworks in a log without changing how they work."""
