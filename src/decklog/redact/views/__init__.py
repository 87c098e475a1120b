"""Further views: of a text, its broken tokens joined, its lines without what a tool put before them; of a value, its strings."""
