"""What a command is confined by."""
