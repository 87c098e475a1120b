"""Asynchronous callers: the same verbs, awaitable, under asyncio, anyio and trio."""
