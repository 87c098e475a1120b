"""Takes over what older systems recorded, and writes it back in their own formats. See docs/importing.md."""
