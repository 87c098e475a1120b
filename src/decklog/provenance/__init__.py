"""Who wrote a line: edits captured as git objects, and origins of lines computed from them."""
