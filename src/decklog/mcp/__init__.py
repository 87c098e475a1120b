"""The MCP server: the short way for agents that call tools instead of commands."""
