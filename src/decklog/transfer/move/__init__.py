"""A whole log from one place or engine to another, with the proof that it arrived."""
