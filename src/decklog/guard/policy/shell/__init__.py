"""What a shell would make of a text: its commands, words and variables."""
