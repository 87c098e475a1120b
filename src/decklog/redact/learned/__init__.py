"""A second opinion, learned from examples, on values that no rule ties to a secret's name."""
