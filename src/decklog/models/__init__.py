"""Calls to models: one client with budgets, recorded prompts and checked answers."""
