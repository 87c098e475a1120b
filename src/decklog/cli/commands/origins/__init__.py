"""Commands about the origin of lines."""
