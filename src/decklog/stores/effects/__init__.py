"""Side effects of tools, and background processes."""
