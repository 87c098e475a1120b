"""What other programs' agents tell of their sessions, in one form, and how it comes into the log once."""
