"""The seven passes, each a function of a change that gives one result."""
