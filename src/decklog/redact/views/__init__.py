"""Further views of a text: tokens broken across lines put together again, and lines without what a tool put before each."""
