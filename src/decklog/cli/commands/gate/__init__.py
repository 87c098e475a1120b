"""The review of changes on the command line, and the prompts that models are given."""
