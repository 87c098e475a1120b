"""Names that a caller gives and that are made a part of a path, where nobody looks whether they lead out of the folder."""

import re
from collections.abc import Iterator

from decklog.review.rules.rule import JVM, SCRIPTS
from decklog.review.rules.source import Source
from decklog.review.structure.signatures import Declared, declared
from decklog.review.structure.told import Trouble
from decklog.review.structure.tree import Tree

_LANGUAGES = (".py", *SCRIPTS, *JVM, ".go", ".rs", ".php", ".rb", ".cs")
# Called as what somebody chooses; a path that a caller gives whole is the caller's own.
_NAMED = re.compile(
    r"(?i)^(?:file_?|doc_?|page_?|note_?|template_?|upload_?|report_?|export_?"
    r"|image_?|user_?|theme_?|attachment_?|object_?|entry_?|tenant_?|table_?)?(?:name"
    r"|key|slug|title)$|^(?:file|filename|document|attachment|requested|wanted)$"
)
_USED = re.compile(
    r"(?<![\w.])open\(|\.(?:open|read_text|read_bytes|write_text|write_bytes|unlink"
    r"|rmdir)\(|\bos\.(?:remove|unlink|rename)\(|\bshutil\.\w+\(|\bsend_file\("
    r"|\b(?:readFile|readFileSync|createReadStream|createWriteStream|writeFile|writeFileSync|unlinkSync|unlink|rmSync|sendFile)\("
    r"|\bos\.(?:Open|OpenFile|ReadFile|Create|Remove|RemoveAll|WriteFile)\(|\bfs::(?:read\w*"
    r"|write|remove\w*)\(|\bFile::(?:open|create)\("
    r"|\bFiles\.(?:read\w*|write\w*|delete\w*|newInputStream|newOutputStream|copy"
    r"|lines)\(|\bnew\s+(?:File\w*|RandomAccessFile|StreamReader)\(|\bFile\.(?:read"
    r"|open|write|delete|Read\w+|Open\w*|Delete|Write\w+)\b"
    r"|\b(?:file_get_contents|file_put_contents|fopen|readfile|unlink|include|require)\b|\bIO\.read\b"
)
_LOOKED = re.compile(
    r"(?i)basename|\.name\b(?!\s*=)|is_relative_to|relative_to|resolve\(\)(?![\s\S]{0,3}\))[\s\S]*\bif\b"
    r"|realpath|commonpath|canonical|normali[sz]e|startswith|startsWith|hasprefix"
    r"|starts_with|islocal|securejoin"
    r"|\bsafe\w*|sanitiz\w*|valid\w*|check\w*|allow\w*|secure_filename|\.match\("
    r"|fullmatch|re\.|regexp|isalnum|isidentifier|\bin\s+[A-Z_]{3,}|not in|\.includes\("
    r"|contains\(|\braise\b|\bthrow\b|uuid|hashlib|digest|quote\(|slugify|enclosed_name"
    r"|os\.Root|\.parts\b|\.test\("
)


def named_paths(tree: Tree) -> Iterator[Trouble]:
    """Find functions with new lines that open what is put together of a folder and a name that they were given."""
    for source in tree.sources:
        if source.suffix not in _LANGUAGES or source.is_test or not source.added:
            continue
        for one in declared(source.text, source.suffix):
            if source.is_new(one.line, one.last) and not one.name.startswith("_") and (line := _line(source, one)) is not None:
                yield Trouble(
                    "path",
                    "a name that a caller gives decides which file is used",
                    source.path,
                    line,
                    "Take its last part alone, or look where it leads.",
                )


def _line(source: Source, one: Declared) -> int | None:
    body = one.body.replace(one.doc, "") if one.doc else one.body
    inner = body.partition("\n")[2] if source.suffix == ".py" else body
    if _LOOKED.search(inner) or not _USED.search(inner):
        return None
    for parameter in one.parameters:
        name = re.escape(parameter.name)
        if not _NAMED.match(parameter.name):
            continue
        end = r"\s*(?:[+.]\s*[\"']\.?\w*[\"'])?"
        joined = re.search(
            rf"[\w\])\"']\s*/\s*(?:f\"[^\"\n]*\{{{name}\}}|{name}\b)|\bjoin\([^()\n]*,\s*{name}{end}\s*\)|[\"']/[\"']\s*[+.]\s*\$?{name}\b|/\$?\{{{name}\}}|\.(?:join|resolve|resolveSibling)\(\s*&?{name}\s*\)"
            rf"|\bJoin\([^()\n]*,\s*{name}{end}\)|\bCombine\([^()\n]*,\s*{name}\s*\)|new\s+File\([^()\n]*,\s*{name}\s*\)",
            inner,
        )
        if joined is not None:
            offset = body.count("\n", 0, len(body) - len(inner) + joined.start())
            return one.line + offset
    return None
