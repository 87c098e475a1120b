"""Shortcuts for agents: verbs that find run, task, worker and fencing token, for the command line and MCP."""
