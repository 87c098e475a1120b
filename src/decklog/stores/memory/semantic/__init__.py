"""Search by meaning: a small sentence model that runs with numpy alone, from weights that a command puts into the user's folder.

Nothing here is imported before somebody recalls a lesson, and nothing is fetched but by `decklog memory model install`.
"""
