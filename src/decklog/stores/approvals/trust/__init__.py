"""Trust: one owner, autonomy levels, and a signature for every promotion."""
