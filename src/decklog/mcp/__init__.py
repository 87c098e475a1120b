"""The MCP server: shortcuts for agents that call tools instead of commands."""
