"""Secrets that people tell each other and programs announce: in sentences, in other languages, on the next line."""
