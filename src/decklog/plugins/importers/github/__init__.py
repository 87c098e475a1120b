"""GitHub: issues with their comments, as `gh` and the API write them."""
