"""Installation and removal of Decklog's hooks and servers in the settings of coding agents."""
