"""The loop that mends: what somebody said was wrong becomes a fix whose test fails without it and passes with it."""
