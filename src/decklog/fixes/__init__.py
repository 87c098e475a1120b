"""The fix loop: feedback becomes a fix whose test fails without it and passes with it."""
