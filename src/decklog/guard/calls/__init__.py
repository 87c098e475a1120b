"""Tool calls: their context, their guards, and the schemas of arguments and results."""
