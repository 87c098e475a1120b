"""Views of recorded sessions for people and agents."""
