"""Charts that the server draws: plain shapes, which need no script and can be printed."""
