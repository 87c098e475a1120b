"""Find the definitions and imports of a source file with a tree-sitter grammar, if it is installed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from decklog.guard.symbols.definitions import SymbolDefinition, SymbolKind

LEAVES = frozenset({"identifier", "type_identifier", "package_identifier", "constant"})
STRINGS = frozenset({"string", "interpreted_string_literal", "raw_string_literal", "string_literal", "system_lib_string"})
FUNCTION_VALUES = frozenset({"arrow_function", "function_expression", "generator_function"})
DECLARED = frozenset({"identifier", "field_identifier", "qualified_identifier", "operator_name", "destructor_name"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """Grammar of a language: its package and the relevant node types."""

    name: str
    package: str
    extensions: frozenset[str]
    classes: frozenset[str]
    functions: frozenset[str]
    imports: frozenset[str]
    scopes: frozenset[str] = frozenset()
    entry: str = "language"


_SCRIPT_FUNCTIONS = _words(
    "function_declaration generator_function_declaration method_definition method_signature"
    " abstract_method_signature variable_declarator field_definition public_field_definition"
)
_C_CLASSES = _words("struct_specifier union_specifier enum_specifier class_specifier")
_TYPESCRIPT = Grammar(
    name="typescript",
    package="tree_sitter_typescript",
    extensions=_words(".ts .mts .cts"),
    classes=_words("class_declaration abstract_class_declaration interface_declaration enum_declaration"),
    functions=_SCRIPT_FUNCTIONS,
    imports=_words("import_statement"),
    scopes=_words("internal_module"),
    entry="language_typescript",
)

GRAMMARS = (
    Grammar(
        name="javascript",
        package="tree_sitter_javascript",
        extensions=_words(".js .jsx .mjs .cjs"),
        classes=_words("class_declaration"),
        functions=_SCRIPT_FUNCTIONS,
        imports=_words("import_statement"),
    ),
    _TYPESCRIPT,
    replace(_TYPESCRIPT, name="tsx", extensions=_words(".tsx"), entry="language_tsx"),
    Grammar(
        name="go",
        package="tree_sitter_go",
        extensions=_words(".go"),
        classes=_words("type_spec"),
        functions=_words("function_declaration method_declaration method_elem"),
        imports=_words("import_spec"),
    ),
    Grammar(
        name="rust",
        package="tree_sitter_rust",
        extensions=_words(".rs"),
        classes=_words("struct_item enum_item trait_item union_item"),
        functions=_words("function_item function_signature_item"),
        imports=_words("use_declaration"),
        scopes=_words("impl_item mod_item"),
    ),
    Grammar(
        name="java",
        package="tree_sitter_java",
        extensions=_words(".java"),
        classes=_words("class_declaration interface_declaration enum_declaration record_declaration"),
        functions=_words("method_declaration constructor_declaration"),
        imports=_words("import_declaration"),
    ),
    Grammar(
        name="c",
        package="tree_sitter_c",
        extensions=_words(".c .h"),
        classes=_C_CLASSES,
        functions=_words("function_definition"),
        imports=_words("preproc_include"),
    ),
    Grammar(
        name="cpp",
        package="tree_sitter_cpp",
        extensions=_words(".cc .cpp .cxx .hh .hpp .hxx"),
        classes=_C_CLASSES,
        functions=_words("function_definition field_declaration declaration"),
        imports=_words("preproc_include"),
        scopes=_words("namespace_definition"),
    ),
    Grammar(
        name="ruby",
        package="tree_sitter_ruby",
        extensions=_words(".rb"),
        classes=_words("class module"),
        functions=_words("method singleton_method"),
        imports=_words("call"),
    ),
)
BY_EXTENSION = {extension: grammar for grammar in GRAMMARS for extension in grammar.extensions}


@lru_cache(maxsize=32)
def parser_of(grammar: Grammar) -> Any | None:
    """Load a language's parser; None if its grammar is not installed."""
    try:
        tree_sitter = import_module("tree_sitter")
        language = getattr(import_module(grammar.package), grammar.entry)
    except (ImportError, AttributeError):
        return None
    return tree_sitter.Parser(tree_sitter.Language(language()))


def definitions(parser: Any, grammar: Grammar, data: bytes) -> Iterator[SymbolDefinition]:
    """Yield every class, function, method and import in a source, even one with syntax errors."""
    pending: list[tuple[Any, tuple[str, ...], bool]] = [(parser.parse(data).root_node, (), False)]
    while pending:
        node, scope, in_class = pending.pop()
        if node.type in grammar.imports:
            yield from _imports(node)
        found = _definition(node, grammar, in_class)
        if found is not None:
            kind, parts = found
            inner = (*scope, *parts)
            if kind is not None:
                yield SymbolDefinition(node.start_point[0] + 1, kind, ".".join(inner), (parts[-1],))
            scope, in_class = inner, kind is SymbolKind.CLASS or node.type == "impl_item"
        pending.extend((child, scope, in_class) for child in reversed(node.named_children))


def _definition(node: Any, grammar: Grammar, in_class: bool) -> tuple[SymbolKind | None, list[str]] | None:
    if node.type in grammar.scopes:
        name = _name(node) or _base_type(node)
        return (None, [name]) if name else None
    if node.type in grammar.classes:
        has_body = node.child_by_field_name("body") is not None or not node.type.endswith("_specifier")
        name = _name(node)
        return (SymbolKind.CLASS, re.split(r"::", name)) if name and has_body else None
    if node.type in grammar.functions:
        return _function(node, in_class)
    return None


def _function(node: Any, in_class: bool) -> tuple[SymbolKind, list[str]] | None:
    value = node.child_by_field_name("value")
    if node.type in ("variable_declarator", "field_definition", "public_field_definition"):
        if value is None or value.type not in FUNCTION_VALUES:
            return None
        name = _name(node) or _text(node.child_by_field_name("property"))
        return (SymbolKind.METHOD if node.type != "variable_declarator" else SymbolKind.FUNCTION, [name]) if name else None
    receiver = node.child_by_field_name("receiver")
    if receiver is not None:
        return SymbolKind.METHOD, [*filter(None, [_first(receiver, "type_identifier")]), _name(node)]
    if node.child_by_field_name("declarator") is not None:
        return _declared(node, in_class)
    is_method = in_class or node.type in ("method_elem", "singleton_method")
    return (SymbolKind.METHOD if is_method else SymbolKind.FUNCTION, [_name(node)]) if _name(node) else None


def _declared(node: Any, in_class: bool) -> tuple[SymbolKind, list[str]] | None:
    # Use a declaration without a body only inside a class; elsewhere it repeats a definition.
    if node.type != "function_definition" and not in_class:
        return None
    inner, is_function = node.child_by_field_name("declarator"), False
    while inner is not None and inner.type not in DECLARED:
        is_function = is_function or inner.type == "function_declarator"
        following = inner.child_by_field_name("declarator")
        inner = following if following is not None else next(iter(inner.named_children), None)
    if inner is None or not is_function:
        return None
    parts = _text(inner).split("::")
    return (SymbolKind.METHOD if in_class or len(parts) > 1 else SymbolKind.FUNCTION), parts


def _imports(node: Any) -> Iterator[SymbolDefinition]:
    if node.type == "call" and _text(node.child_by_field_name("method")) not in ("require", "require_relative"):
        return
    strings = [_text(one).strip("\"'`<>") for one in _descendants(node, STRINGS)]
    leaves = [_text(one) for one in _descendants(node, LEAVES)] if node.type != "call" else []
    line = node.start_point[0] + 1
    whole = strings[0] if strings else _path_text(node)
    yield SymbolDefinition(line, SymbolKind.IMPORT, whole, tuple(dict.fromkeys([*strings, *leaves])))


def _path_text(node: Any) -> str:
    words = re.sub(r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:use|import)\s+(?:static\s+)?|;\s*$", "", _text(node))
    return re.sub(r"\s+", " ", words).replace("::", ".")


def _descendants(node: Any, types: frozenset[str]) -> Iterator[Any]:
    pending = [node]
    while pending:
        one = pending.pop()
        if one.type in types:
            yield one
        pending.extend(reversed(one.named_children))


def _name(node: Any) -> str:
    return _text(node.child_by_field_name("name"))


def _base_type(node: Any) -> str:
    kind = node.child_by_field_name("type")
    return (_text(kind) if kind.type in LEAVES else _first(kind, "type_identifier")) if kind else ""


def _first(node: Any, wanted: str) -> str:
    return _text(next(_descendants(node, frozenset({wanted})), None))


def _text(node: Any) -> str:
    return node.text.decode("utf-8", "replace") if node is not None else ""
