"""Commands about who wrote a line, and why."""
