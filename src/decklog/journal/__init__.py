"""The journal: entries, their chain, and what is proven from them."""
