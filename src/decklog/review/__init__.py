"""The review of a change before it is published: seven passes with one form of result, and one verdict."""
