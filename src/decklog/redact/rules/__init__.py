"""The table of rules: which secrets there are and what they look like."""
