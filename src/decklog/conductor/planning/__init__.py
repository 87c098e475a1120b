"""Plans that nobody wrote by hand: proposed by an agent and checked as data, or taken from tasks of the log."""
