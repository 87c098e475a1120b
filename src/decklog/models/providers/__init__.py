"""Who answers a call: an agent's program without a terminal, a provider's library, or a script for tests."""
