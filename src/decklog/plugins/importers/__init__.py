"""Importers and exporters of other products' records."""
