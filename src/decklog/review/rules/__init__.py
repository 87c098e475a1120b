"""What the free passes look for in the text of a change, one subject a file."""
