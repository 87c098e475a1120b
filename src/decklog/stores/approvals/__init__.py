"""Where people are: questions to them, messages from them, and what they trust."""
