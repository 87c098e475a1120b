"""Agents' programs, as the command line sets them up and examines them."""
