"""One call of a tool: what it is given, what guards it, and the form of its arguments and results."""
