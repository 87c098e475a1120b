"""Find secrets in texts and JSON values and replace them with markers."""
