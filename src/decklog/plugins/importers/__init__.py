"""Other products' records, taken over and given back."""
