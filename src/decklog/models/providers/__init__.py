"""Model providers: agent programs without a terminal, providers' libraries, and scripts for tests."""
