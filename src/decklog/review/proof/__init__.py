"""Whether a test proves a fix: run without it and with it, watched from inside, three times each."""
