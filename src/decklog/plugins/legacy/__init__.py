"""Other products' own surfaces over a log."""
