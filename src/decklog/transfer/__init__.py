"""Taking a log elsewhere, keeping copies of it, and mending it."""
