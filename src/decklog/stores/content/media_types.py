"""Media types by file name: what agents' files are, the same on every machine."""

# Machines disagree on these, or take them for something else: .ts is a video to most, .rs an XML dialect.
_OURS = {
    "c": "text/x-c",
    "cfg": "text/plain",
    "cpp": "text/x-c++",
    "css": "text/css",
    "csv": "text/csv",
    "diff": "text/x-diff",
    "go": "text/x-go",
    "h": "text/x-c",
    "html": "text/html",
    "ini": "text/plain",
    "java": "text/x-java",
    "js": "text/javascript",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "log": "text/plain",
    "md": "text/markdown",
    "patch": "text/x-diff",
    "py": "text/x-python",
    "rs": "text/x-rust",
    "sh": "application/x-sh",
    "sql": "application/sql",
    "toml": "application/toml",
    "ts": "text/typescript",
    "tsx": "text/typescript",
    "txt": "text/plain",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
UNKNOWN = "application/octet-stream"


def media_type_of(path: str, *, is_text: bool = False) -> str:
    """Guess a media type from the end of a path; without a known end, text is `text/plain`."""
    name = path.rpartition("/")[2]
    ours = _OURS.get(name.rpartition(".")[2].lower()) if "." in name else None
    if ours is not None:
        return ours
    from mimetypes import guess_type

    return guess_type(name)[0] or ("text/plain" if is_text else UNKNOWN)
