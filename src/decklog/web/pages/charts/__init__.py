"""Charts as server-rendered SVG. They need no script and can be printed."""
