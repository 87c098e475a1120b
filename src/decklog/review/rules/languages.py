"""Which language a file is written in, by its name, and how a line of it is a comment."""

_SLASHES = (
    *(".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".go", ".rs", ".java", ".kt", ".kts", ".scala", ".swift", ".dart"),
    *(".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".php"),
)
_HASHES = (".py", ".rb", ".sh", ".bash", ".pl", ".r", ".ex", ".exs", ".ps1")
COMMENTS = {**dict.fromkeys(_SLASHES, "//"), **dict.fromkeys(_HASHES, "#"), ".lua": "--", ".hs": "--", ".sql": "--"}
# Comments that are documents, which may show code, or words to a program.
_DOCUMENTS = ("///", "//!", "/**", "#!", "--|", "-- |")


def suffix_of(path: str) -> str:
    """Give how the name of a file ends, in lower case, with its dot; nothing where it has none."""
    name = path.rpartition("/")[2]
    return "." + name.rpartition(".")[2].lower() if "." in name else ""


def is_comment(line: str, suffix: str) -> bool:
    """Say whether a line is a comment for readers of the program, and no document of it."""
    text = line.strip()
    if text.startswith(_DOCUMENTS):
        return False
    return text.startswith(COMMENTS[suffix]) or (COMMENTS[suffix] == "//" and text.startswith("/*"))
