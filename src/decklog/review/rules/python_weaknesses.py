"""What takes protection away in Python: certificates, paths and addresses from outside, unescaped pages, weak chance."""

import ast
import re
from collections.abc import Iterator

from decklog.review.rules.joined_texts import EVAL, LOADING, PAGE
from decklog.review.rules.outside import ADDRESS, PATH
from decklog.review.rules.python_dangers import dotted, names_of
from decklog.review.rules.rule import Found, Told
from decklog.review.rules.source import Source
from decklog.review.rules.weaknesses import CRYPTO, EXPOSED, SIGNATURE, TLS

Function = ast.FunctionDef | ast.AsyncFunctionDef
DEBUG_SERVER = Told("debug", "a server that shows everybody its inside", "Leave it off where others reach it.")
RACE = Told("path", "between the name and its use another may take its place", "Use mkstemp, or NamedTemporaryFile.")
ARCHIVE = Told("path", "an archive decides where its files go", "Give filter='data'.")
_FILES = re.compile(
    r"^(?:open|io\.open|codecs\.open|os\.(?:remove|unlink|rename|rmdir|open|listdir|scandir)|shutil\.(?:rmtree|copy\w*|move)"
    r"|pathlib\.Path|aiofiles\.open"
    r"|.*\.(?:send_file|FileResponse|read_text|read_bytes|write_text|write_bytes|unlink|open)|send_file|(?:\w+\.)*(?:send_file"
    r"|FileResponse))$"
)
_PLACES = re.compile(
    r"^(?:requests|httpx|aiohttp|session|client|http|urllib3)\.(?:\w+\.)?(?:get|post|put|patch|delete|head|request)$"
    r"|^urllib\.request\.(?:urlopen|urlretrieve|Request)$|^(?:\w+\.)*(?:redirect|HttpResponseRedirect|RedirectResponse)$"
)
_OUTSIDE = re.compile(
    r"\b(?:request|req|self\.request|flask\.request)\.(?:args|form|values|json|files|GET|POST|params|query|query_params"
    r"|path_params|match_info|data|headers|cookies|url|get_json|body|matchdict|FILES)\b"
    r"|\b(?:self\.get_(?:query_)?argument|st\.text_input)\(|\bevent\[['\"](?:queryStringParameters|pathParameters|body)"
)
_ROUTE = re.compile(
    r"\b(?:\w*app|router|\w*bp|blueprint|api|\w*_routes?|routes)\.(?:route|get|post|put|delete|patch|head|websocket"
    r"|api_route)\b|api_view|\bview_config\b"
)
_LOOKED_AT = re.compile(
    r"secure_filename|\bbasename\b|safe_join|is_relative_to|commonpath|realpath|\.resolve\(|relative_to\(|startswith\(|normpath"
    r"|['\"]\.\.['\"/]|\.name\b|url_has_allowed_host|ALLOWED|allowed|whitelist|fullmatch|isalnum|\.match\(|int\(|UUID|uuid"
    r"|validate|sanitize|is_safe|url_for|in [A-Z_]{3,}\b"
)
_NAMED = re.compile(
    r"(?i)(?:^|_)(?:file_?name|fname|user_?(?:path|file|name|input|id)|requested(?:_\w+)?|upload(?:ed)?_?\w*"
    r"|attachment(?:_name)?|untrusted\w*|client_path)$"
)
_CHANCE = re.compile(r"^random\.(?:choices?|randint|random|randrange|sample|getrandbits|randbytes)$")
_TOKENS = re.compile(
    r"(?i)password|passwd|secret|token|session_?id|otp|nonce|salt|csrf|api_?key|reset|invite|verification|one_?time"
)


def weaknesses(source: Source) -> Iterator[Found]:
    """Find what takes protection away on new lines of a module."""
    tree = source.tree
    if tree is None:
        return
    names = names_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and source.is_new(node.lineno, node.end_lineno or node.lineno):
            told = _of_call(node, (dotted(node.func, names) or "").removeprefix("builtins."))
            if told is not None:
                yield Found(told, node.lineno)
        elif isinstance(node, ast.Assign) and source.is_new(node.lineno, node.end_lineno or node.lineno):
            yield from (Found(told, node.lineno) for told in _of_assignment(node, names, source))
        if isinstance(node, Function):
            yield from _of_function(source, node, names)


def _words(node: ast.Call) -> dict[str, ast.expr]:
    return {word.arg: word.value for word in node.keywords if word.arg is not None}


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _of_call(node: ast.Call, called: str) -> Told | None:
    words = _words(node)
    last = called.rpartition(".")[2]
    if _is(words.get("verify"), False) and last not in ("loads", "decode"):
        return TLS
    if last in ("TCPConnector", "get", "post", "request", "ws_connect", "put") and (
        _is(words.get("ssl"), False) or _is(words.get("verify_ssl"), False)
    ):
        return TLS
    if called in (
        "ssl._create_unverified_context",
        "ssl._create_default_https_context",
        "urllib3.disable_warnings",
        "requests.packages.urllib3.disable_warnings",
    ) or last in ("AutoAddPolicy", "disable_warnings"):
        return TLS if last != "disable_warnings" or "urllib3" in called else None
    if last == "tls_insecure_set" and node.args and _is(node.args[0], True):
        return TLS
    if (
        last == "decode"
        and "jwt" in called
        and (
            _is(words.get("verify"), False) or "none" in ast.unparse(words.get("algorithms", ast.Constant(0))).lower().split("'")
        )
    ):
        return SIGNATURE
    return _of_other_call(node, called, last, words)


def _of_other_call(node: ast.Call, called: str, last: str, words: dict[str, ast.expr]) -> Told | None:
    if last == "run" and _is(words.get("debug"), True) and "subprocess" not in called and "asyncio" not in called:
        return DEBUG_SERVER
    if called == "tempfile.mktemp":
        return RACE
    if (last in ("extractall", "extract") and "filter" not in words and ("tar" in called.lower())) or (
        called == "shutil.unpack_archive" and "filter" not in words
    ):
        return ARCHIVE
    if last in ("Environment", "Template") and _is(words.get("autoescape"), False):
        return PAGE
    if (
        last in ("mark_safe", "Markup", "render_template_string", "HTMLResponse", "HttpResponse", "format_html")
        and node.args
        and _is_joined(node.args[0])
        and (last not in ("HttpResponse",) or "<" in ast.unparse(node.args[0]))
    ):
        return PAGE
    if last == "load" and called.startswith(("numpy.", "np.")) and _is(words.get("allow_pickle"), True):
        return LOADING
    if (last == "YAML" and _is_text(words.get("typ"), "unsafe")) or (last == "load_model" and _is(words.get("safe_mode"), False)):
        return LOADING
    if last == "chmod" and any(isinstance(one, ast.Constant) and one.value in (0o777, 0o666) for one in node.args):
        return EXPOSED
    if called in ("code.interact", "runpy.run_path") and node.args and not isinstance(node.args[0], ast.Constant):
        return EVAL
    return None


def _is_text(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def _is_joined(node: ast.expr) -> bool:
    """Say whether a text has values put into it."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(one, ast.FormattedValue) and "escape" not in ast.unparse(one) for one in values)
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            return not all(
                isinstance(one, ast.BinOp | ast.Constant | ast.operator) for one in ast.walk(node)
            ) and "escape" not in ast.unparse(node)
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="format")):
            return "escape" not in ast.unparse(node)
        case _:
            return _OUTSIDE.search(ast.unparse(node)) is not None


def _of_assignment(node: ast.Assign, names: dict[str, str], source: Source) -> Iterator[Told]:
    targets = [ast.unparse(one) for one in node.targets]
    if any(one.endswith(("verify", "check_hostname")) and "." in one for one in targets) and _is(node.value, False):
        yield TLS
    if any(one.endswith("_create_default_https_context") for one in targets):
        yield TLS
    if "DEBUG" in targets and _is(node.value, True) and re.search(r"settings|config|prod", source.path):
        yield DEBUG_SERVER
    if any(_TOKENS.search(one) for one in targets) and any(
        isinstance(one, ast.Call) and _CHANCE.match(dotted(one.func, names) or "") for one in ast.walk(node.value)
    ):
        yield CRYPTO


# What comes from outside


def _of_function(source: Source, node: Function, names: dict[str, str]) -> Iterator[Found]:
    if not source.is_new(node.lineno, node.end_lineno or node.lineno):
        return
    calls = [(one, dotted(one.func, names) or ast.unparse(one.func)) for one in ast.walk(node) if isinstance(one, ast.Call)]
    if _TOKENS.search(node.name) and not source.is_test:
        yield from (Found(CRYPTO, one.lineno) for one, called in calls if _CHANCE.match(called))
    leading = [(one, called) for one, called in calls if _FILES.match(called) or _PLACES.match(called)]
    if not leading or _LOOKED_AT.search(ast.unparse(node).partition(":\n")[2]):
        return
    outside = _from_outside(node)
    for call, called in leading:
        if not (call.args or isinstance(call.func, ast.Attribute)):
            continue
        given = (
            call.args[0]
            if call.args and not called.endswith((".read_text", ".read_bytes", ".unlink", ".write_text", ".write_bytes"))
            else call.func
        )
        if not source.is_new(call.lineno, call.end_lineno or call.lineno):
            continue
        if _FILES.match(called) and (_leads(given, outside) or _is_named(given, node)):
            yield Found(PATH, call.lineno)
        elif _PLACES.match(called) and _begins(given, outside):
            yield Found(ADDRESS, call.lineno)


def _from_outside(node: Function) -> set[str]:
    """Name what a function has from outside: what a route hands it, what it reads of a request, and what it makes of those."""
    found = set()
    if any(_ROUTE.search(ast.unparse(one)) for one in node.decorator_list):
        numbers = ("int", "float", "bool", "UUID", "uuid.UUID")
        skipped = ("self", "cls", "request", "db", "session", "user", "current_user", "background_tasks", "response")
        given = [*node.args.args, *node.args.kwonlyargs]
        found = {
            one.arg
            for one in given
            if one.arg not in skipped and not (one.annotation is not None and ast.unparse(one.annotation) in numbers)
        }
        defaults = dict(zip([one.arg for one in reversed(node.args.args)], reversed(node.args.defaults), strict=False))
        found -= {name for name, value in defaults.items() if "Depends" in ast.unparse(value)}
    for _ in range(3):
        for one in ast.walk(node):
            if isinstance(one, ast.Assign | ast.NamedExpr) and one.value is not None and _leads(one.value, found):
                targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _leads(node: ast.expr, outside: set[str]) -> bool:
    return _OUTSIDE.search(ast.unparse(node)) is not None or any(
        isinstance(one, ast.Name) and one.id in outside for one in ast.walk(node)
    )


def _begins(node: ast.expr, outside: set[str]) -> bool:
    """Say whether an address is somebody else's from its beginning."""
    if isinstance(node, ast.JoinedStr):
        first = node.values[0] if node.values else node
        return isinstance(first, ast.FormattedValue) and _leads(first.value, outside)
    if isinstance(node, ast.BinOp):
        return _begins(node.left, outside) or (
            isinstance(node.left, ast.Constant)
            and str(node.left.value) in ("http://", "https://")
            and _leads(node.right, outside)
        )
    return isinstance(node, ast.Name | ast.Subscript | ast.Attribute | ast.Call) and _leads(node, outside)


def _is_named(node: ast.expr, function: Function) -> bool:
    """Say whether a parameter that is called as what users send is put behind a place that is written there."""
    given = {one.arg for one in function.args.args}
    parts = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    named = [one.id for one in parts if one.id in given and _NAMED.search(one.id)]
    is_join = isinstance(node, ast.JoinedStr | ast.BinOp) or (
        isinstance(node, ast.Call) and ast.unparse(node.func).endswith("join")
    )
    has_place = any(
        isinstance(one, ast.Constant) and isinstance(one.value, str) and "/" in one.value for one in ast.walk(node)
    ) or any(one.id.isupper() for one in parts)
    return bool(named) and is_join and has_place
