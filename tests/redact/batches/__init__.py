"""Batches of texts for redaction, drawn afresh from a seed: templates of contexts times shapes of values times names."""
