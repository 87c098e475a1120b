"""Screens for a person: what goes on in a log, once as text or live on the whole terminal."""
