"""The asynchronous interface, for asyncio, anyio and trio."""
