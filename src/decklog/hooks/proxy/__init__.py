"""Proxy that an editor starts in place of an agent: it relays, records and guards all messages."""
