"""What single programs would do with their arguments."""
