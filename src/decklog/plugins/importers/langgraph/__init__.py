"""LangGraph: the checkpoints of every thread, and what its nodes wrote between them."""
