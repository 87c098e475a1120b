"""Which lessons are near a question in what they mean: vectors of texts, kept in the process and compared there."""
