"""Charges, prices and budgets."""
