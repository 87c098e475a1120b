"""Commands, statements and pages that are put together from values, in languages other than Python.

A text is put together where a literal is followed by a value: added to it, named within it, or filled into its form. Where the
value stands tells what it is: after `where name =` it is a value of a statement, whatever the text is given to.
"""

from decklog.review.rules.rule import JVM, RECIPES, SCRIPTS, SETTINGS, SHELLS, C, Told, rule

EVAL = Told("eval", "a text is run as code", "Read the text by what it may be: JSON, or a table of functions.")
SHELL = Told("shell", "a text that is put together is given to a shell", "Give the program and its arguments apart.")
SQL = Told("sql", "a statement is put together from values", "Bind the values as parameters.")
LOADING = Told("unpickling", "objects are made of whatever the data says", "Keep data as JSON, or in a table.")
PAGE = Told("html", "a value becomes a part of a page as it is", "Set it as text, or have it escaped.")

_BRACES = (*SCRIPTS, *JVM, *C, ".cs", ".php", ".dart", ".swift", ".go", ".rs", ".rb", ".pl", ".pm", ".lua", ".ex", ".exs")
_VERB = (
    r"(?:select\b|insert\s+into\b|update\b|delete\s+from\b|replace\s+into\b|merge\s+into\b|drop\s+table\b|where\b|and\b"
    r"|order\s+by\b|having\b)"
)
# Where only a value can stand: after a comparison, in a list, as a limit.
_PLACE = (
    r"(?:[=<>]\s*|\blike\s+|\bin\s*\(\s*|\bvalues\s*\([^()\"`]{0,400}|\blimit\s+|\boffset\s+|\border\s+by\s+"
    r"|\bdrop\s+table\s+|\bdelete\s+from\s+)(?:'?%?)"
)
_ADDED = r"(?:\+|\.(?!\w*\()|\.\.|<>|\|\||&(?!&))\s*[$@\w(\[]"
# After `-c` of a shell comes a text that is not all written there.
_PROGRAM = r"[\"'](?:/bin/|/usr/bin/)?(?:ba|da|z|k)?sh[\"']|[\"'](?:cmd(?:\.exe)?|powershell(?:\.exe)?|pwsh)[\"']"
_DASH_C = r"[\"'](?:-\w{0,2}c|/[cC]|-Command|-EncodedCommand)[\"']"

RULES = (
    rule(
        SQL,
        _BRACES,
        rf"(?i)\"[^\"\n]*\b{_VERB}[^\"\n]*{_PLACE}\\?\"\s*{_ADDED}",
        rf"(?i)(?<!\w)'[^'\n]*\b{_VERB}[^'\n]*{_PLACE.replace(chr(39), '(?:' + chr(92) * 2 + chr(39) + ')')}'\s*{_ADDED}",
        rf"(?i)(?<!sql)(?<!sql\.raw)(?<!\w)`[^`]{{0,400}}\b{_VERB}[^`]{{0,400}}{_PLACE}[\"]?\$\{{",
        rf"(?i)\"[^\"]{{0,400}}\b{_VERB}[^\"]{{0,400}}{_PLACE}(?:#\{{|\$\{{|\\\()",
        rf"(?i)(?:format!?|sprintf|Sprintf|Errorf|formatted|concat"
        rf"|append)\(\s*(?:\w+,\s*)?[\"`][^\"`]{{0,400}}\b{_VERB}[^\"`]{{0,400}}{_PLACE}(?:%[svdq]|\{{\w*\}})",
        rf"(?i)\"[^\"\n]*\b{_VERB}[^\"\n]*{_PLACE}(?:%s|%d|\{{\d?\}})[^\"\n]*\"\s*\.\s*(?:format|formatted)\(",
    ),
    rule(
        SQL,
        (".php", ".pl", ".pm", ".kt", ".kts", ".groovy", ".scala", ".dart"),
        rf"(?i)\"[^\"]{{0,400}}\b{_VERB}[^\"]{{0,400}}{_PLACE}\$\{{?\w",
    ),
    rule(SQL, (".cs",), rf"(?i)\$@?\"[^\"]{{0,400}}\b{_VERB}[^\"]{{0,400}}{_PLACE}\{{"),
    rule(
        SQL,
        SCRIPTS,
        r"\$(?:queryRawUnsafe|executeRawUnsafe)\(\s*(?:`[^`]{0,400}\$\{|[\w.]+\s*[,)]|[\"'][^\"'\n]*[\"']\s*\+)"
        r"|\bknex\.raw\(\s*(?:`[^`]{0,400}\$\{|[\"'][^\"'\n]*[\"']\s*\+)",
    ),
    rule(SQL, (".rb",), r"(?i)\.(?:where|find_by_sql|order|pluck|joins|select|having|exec_query|execute)\(?\s*\"[^\"\n]*#\{"),
    rule(
        SQL,
        (*SHELLS, *RECIPES, *SETTINGS),
        rf"(?i)\b(?:psql|mysql|sqlite3|mariadb|sqlcmd|bq query"
        rf"|clickhouse-client)\b[^\n]*[\"'][^\n]*\b{_VERB}[^\n]*{_PLACE}\$\{{?[\w@]",
    ),
    rule(
        SQL,
        (".sql",),
        r"(?i)\b(?:execute(?:\s+immediate)?|exec|sp_executesql)\b\s*\(?\s*N?'[^;]{0,400}'\s*(?:\|\||\+)\s*@?\w"
        r"|\bset\s+@\w+\s*=\s*N?'[^;]{0,400}'\s*\+\s*@\w|:=\s*'[^;]{0,400}\b(?:select|update|delete"
        r"|insert)\b[^;]{0,400}'\s*\|\|\s*\w",
    ),
    rule(
        SHELL,
        _BRACES,
        rf"(?:{_PROGRAM})[^;\n]{{0,40}}?{_DASH_C}\s*(?:\]?\s*[,)]\s*)?(?:\.args?\(\s*&?\[?\s*"
        rf"|,\s*)?(?!\s*[\"'`][^\"'`$#{{\\\n]*[\"'`]\s*[,)\]}}])(?:[\w$&*(\[]|[\"'`][^\n]*(?:\$|#\{{|\{{|\+))",
        rf"(?s)Command::new\(\s*{_PROGRAM}\s*\)[^;]{{0,80}}?\.arg\(\s*{_DASH_C}\s*\)\s*\.arg\(\s*(?!\"[^\"]{{0,400}}\"\s*\))",
    ),
    rule(
        SHELL,
        SCRIPTS,
        r"(?<![\w.$])(?:child_process\.|cp\.|shell\.|shelljs\.)?(?:exec|execSync|execAsync|execPromise|execa\.command"
        r"|execaCommand\w*)\(\s*(?:`[^`]{0,400}\$\{|[\"'][^\"'\n]*[\"']\s*\+|[\w.]+\s*\+|\w*[cC](?:md|ommand)\w*\s*[,)]|req\b)",
        r"\b(?:child_process|cp|shell|shelljs)\.exec(?:Sync)?\(\s*(?![\"'`)])",
    ),
    rule(
        SHELL,
        (".rb",),
        r"(?:%x[({\[]|Open3\.\w+\(|IO\.popen\(|Kernel\.(?:system|exec|spawn)\(|\bopen\(\s*\"\|)[^\n]*#\{|(?<![\w.])(?:system"
        r"|exec|spawn)\(?\s*(?:params|cmd|command)\b",
    ),
    rule(
        SHELL,
        JVM,
        r"\bgetRuntime\(\)\s*\.exec\(\s*(?:[^\")\s{][^,\n]*\)|\"[^\"]{0,400}\"\s*\+|\"[^\"]{0,400}\$)"
        r"|\bgetRuntime\(\)\s*\.exec\(\s*String\.format\(|\[\"\w+\",[^\]]*\]\.execute\(\)"
        r"|\"[^\"]{0,400}\$[{\w][^\"]{0,400}\"\.execute\(\)",
    ),
    rule(
        SHELL,
        (".cs",),
        r"Process\.Start\(\s*\"(?:cmd|powershell|/bin/(?:ba)?sh)[^\"]{0,400}\"\s*,\s*(?:\$\"|\"[^\"]{0,400}\"\s*\+|\w+\s*[+)])"
        r"|Arguments\s*=\s*(?:\$@?\"[^\"]{0,400}(?:/[cC]|-c)\b[^\"]{0,400}\{|\"[^\"]{0,400}(?:/[cC]|-c)\b[^\"]{0,400}\"\s*\+)",
    ),
    rule(
        SHELL,
        C,
        r"(?s)\b(?:sprintf|snprintf|strcat|strncat)\(\s*(?P<b>\w+)\s*,[^;]{0,400};(?:[^}]{0,200}?)(?<![\w.])(?:system"
        r"|popen)\(\s*(?P=b)\b",
    ),
    rule(
        SHELL,
        (".php",),
        r"(?<![\w>$:])(?:system|exec|shell_exec|passthru|popen|proc_open)\s*\(\s*(?!.*escapeshell)(?:\$|[\"'][^\"'\n]*(?:\$"
        r"|[\"']\s*\.))|`[^`\n]*\$\w[^`\n]*`",
    ),
    rule(
        SHELL,
        SHELLS,
        r"^(?:[^#\n]*[\s;&|(])?eval\s+(?:\"[^\"\n]*\$|\$|`)(?!\(\s*(?:ssh-agent|\S*brew shellenv|pyenv init|rbenv init|direnv"
        r"|dircolors|docker-machine env|opam env|minikube docker-env|starship init|zoxide init|fnm env|getopt))",
        r"\b(?:ba|da|z)?sh\s+-\w{0,2}c\s+(?:\"[^\"\n]*\$[{\w@*]|\$[\w{@*])|\bxargs\b[^\n]*\bsh\s+-c\s+['\"][^'\"\n]*\{\}",
        r"\bssh\s+[^\n\"']*\"[^\"\n]*\$[\d@*]|(?:\bsource|^[ \t]*\.)\s+<\(\s*(?:curl|wget)\b|\b(?:ba)?sh\s+<\(\s*(?:curl|wget)\b",
    ),
    rule(
        Told("command", "what it takes away depends on a name that may be empty", "Guard the name: ${NAME:?}, and quote it."),
        (*SHELLS, *RECIPES),
        r"\brm\s+(?:-\w+\s+)*-\w*[rR]\w*\s+(?:-\w+\s+|--\s+)*(?:\"?\$\{?(?!\{?\w+:[?-])[A-Za-z_]\w*\}?\"?/?\*"
        r"|\"?\$\{?[A-Za-z_]\w*\}?\"?/(?:\s|$|\")|\$\{?[\d@*])",
    ),
    rule(
        Told("command", "what others publish is run unseen", "Fetch it, check its digest, then run it."),
        (*SETTINGS, *RECIPES, *SHELLS, ".ps1", *SCRIPTS, ".rb", ".go"),
        r"\b(?:curl|wget)\b[^\n|;&]*\|\s*(?:sudo\s+(?:-\w+\s+)*)?(?:env\s+\S+\s+)?(?:ba|z|da)?sh\b|\b(?:curl|wget)\b[^\n"
        r"|;&]*\|\s*(?:sudo\s+)?(?:python3?|node|perl|ruby)\b",
        r"(?:ba)?sh\s+-c\s+[\"']?\$\(\s*(?:curl|wget)\b|(?i:\b(?:iwr|irm|invoke-webrequest|invoke-restmethod)\b[^\n"
        r"|]*\|\s*(?:iex|invoke-expression))|(?i:iex\s*\(+\s*(?:new-object|irm|iwr))",
    ),
    rule(
        EVAL,
        SCRIPTS,
        r"(?<![\w.$])(?:window\.|globalThis\.|global\.)?eval\(\s*(?!\s*[\"'`][^\"'`$\n]*[\"'`]\s*\))[\w$`\"'(]",
        r"\bnew\s+Function\(\s*(?!\s*\))(?:[\w.$]+\s*[,)]|[^)\n]*(?:\+|\$\{|,\s*[\w.$]+\s*\)))"
        r"|(?<![\w.$])Function\(\s*[\w.]+\s*\)\s*\(",
        r"(?<![\w.$])set(?:Timeout|Interval)\(\s*(?:\"[^\"\n]*\"\s*\+|'[^'\n]*'\s*\+|`[^`]{0,400}\$\{)|\bvm\.(?:runIn\w+Context"
        r"|compileFunction)\(\s*(?![\"'`])|new\s+vm\.Script\(\s*(?![\"'`])",
    ),
    rule(
        EVAL,
        (".php",),
        r"(?<![\w>$:])eval\s*\([^;\n]*\$|(?<![\w>$:])(?:assert|create_function|call_user_func(?:_array)?)\s*\(\s*\$_"
        r"|preg_replace\(\s*['\"]/[^/\n]*/\w*e|(?<![\w>$:])(?:include|require)(?:_once)?\s*\(?\s*\$_(?:GET|POST|REQUEST)",
    ),
    rule(
        EVAL,
        (".rb",),
        r"\b(?:instance_eval|class_eval|module_eval|eval)\(?\s*(?:params|\"[^\"\n]*#\{|[a-z_]+\s*(?:\)|$))"
        r"|\.(?:public_)?send\(\s*params|\bconstantize\b(?=[^\n]*params)|params\[[^\]]*\]\.constantize",
    ),
    rule(
        EVAL,
        JVM,
        r"\b(?:engine|scriptEngine|js|shell|GroovyShell\(\)|getEngineByName\([^)]*\))\s*\.(?:eval|evaluate)\(\s*(?!\")"
        r"|\bEval\.me\(\s*(?!\")|\bSpelExpressionParser\(\)\.parseExpression\(\s*(?!\")|\bparser\.parseExpression\(\s*(?!\")",
    ),
    rule(EVAL, (".cs",), r"\bCSharpScript\.(?:Evaluate|Run)Async\w*(?:<[^>]*>)?\(\s*(?!\")|CompileAssemblyFromSource\("),
    rule(EVAL, (".ex", ".exs"), r"\bCode\.eval_(?:string|quoted)\(\s*(?!\")|:erlang\.binary_to_term\([^)]*\)(?!.*:safe)"),
    rule(EVAL, (".r",), r"\beval\(\s*parse\(\s*text\s*="),
    rule(EVAL, (".lua",), r"(?<![\w.:])(?:load|loadstring|dofile)\(\s*(?![\"'\[)])"),
    rule(EVAL, (".pl", ".pm"), r"(?<![\w>$:])eval\s*\(?\s*[\"$]"),
    rule(
        LOADING,
        JVM,
        r"\bnew\s+XMLDecoder\(|\bnew\s+XStream\(\s*\)|\.(?:enableDefaultTyping|activateDefaultTyping)\(|\bnew\s+Yaml\(\s*\)"
        r"|\bObjectInputStream\(|@JsonTypeInfo\(\s*use\s*=\s*(?:JsonTypeInfo\.)?Id\.CLASS|SerializationUtils\.deserialize\(",
    ),
    rule(
        LOADING,
        (".cs",),
        r"\bTypeNameHandling\s*=\s*TypeNameHandling\.(?!None)|\bTypeNameHandling\.(?:All|Auto|Objects|Arrays)\b"
        r"|\bnew\s+(?:BinaryFormatter|SoapFormatter|LosFormatter|NetDataContractSerializer|ObjectStateFormatter"
        r"|SimpleTypeResolver)\(",
    ),
    rule(
        LOADING,
        (".rb",),
        r"\bMarshal\.(?:load|restore)\b|\bYAML\.(?:unsafe_load\w*|load\((?!.*(?:permitted_classes|File\.read|safe))"
        r"|load_file\()|\bPsych\.(?:unsafe_load|load)\(|\bOj\.(?:load|object_load)\((?!.*strict)",
    ),
    rule(
        LOADING,
        SCRIPTS,
        r"\bserialize\.unserialize\(|(?<![\w.])unserialize\(|\bDEFAULT_FULL_SCHEMA\b|\bv8\.deserialize\(|\bfuncster\b"
        r"|(?<![\w.])deserialize\(\s*(?:req|request|cookie)",
    ),
    rule(LOADING, (".php",), r"(?<![\w>$:])unserialize\s*\((?!.*allowed_classes)|\byaml_parse\(\s*\$_"),
    rule(LOADING, (".pl", ".pm"), r"\b(?:thaw|retrieve|Storable::\w+)\s*\("),
    rule(
        PAGE,
        SCRIPTS,
        r"\.(?:innerHTML|outerHTML)\s*\+?=\s*(?:`[^`]{0,400}\$\{(?![^}]*(?:escape|sanitize|purify|encode))"
        r"|[^;\n`]*[\"'][^\"'\n]*[\"']\s*\+\s*(?!\s*(?:escape|sanitize|DOMPurify|encode))[\w$]|(?:location|document\.(?:URL"
        r"|referrer|cookie)|req\b|params\b|query\b|\w*[iI]nput\w*\.value|event\.data|e\.data|data\.\w+|\w+\.(?:name|body"
        r"|content|comment|message|bio|text|html)\b))",
        r"\bdocument\.write(?:ln)?\(\s*(?:`[^`]{0,400}\$\{|[^\"'`)\s]|[\"'][^\"'\n]*[\"']\s*\+)"
        r"|\.insertAdjacentHTML\(\s*[^,\n]+,\s*(?:`[^`]{0,400}\$\{|[\w.]+\s*\)|[\"'][^\"'\n]*[\"']\s*\+)",
        r"dangerouslySetInnerHTML\s*=\s*\{\{\s*__html\s*:\s*(?!\s*(?:DOMPurify|sanitize|purify|escape|\"|'|clean|safe))[\w.`]",
        r"\bv-html\s*=|\{@html\s+(?!.*(?:sanitize|purify))|\bbypassSecurityTrust\w+\(|\$\([^)\n]*\)\.(?:html"
        r"|append)\(\s*(?:`[^`]{0,400}\$\{|[^\"'`)\n]*[\"'][^\"'\n]*[\"']\s*\+|(?:req|data|response|input)\b)",
        r"\bres\.(?:send|write|end)\(\s*(?:`[^`]{0,400}<[^`]{0,400}\$\{\s*(?:req|request)\b"
        r"|[\"'][^\"'\n]*<[^\"'\n]*[\"']\s*\+\s*(?:req|request)\b)",
    ),
    rule(
        PAGE,
        (".go",),
        r"\btemplate\.(?:HTML|JS|URL|HTMLAttr)\(\s*(?!\s*(?:\"[^\"\n]*\"|`[^`]{0,400}`)\s*\))"
        r"|fmt\.Fprintf?\(\s*w\s*,\s*\"[^\"]{0,400}<\w+[^\"]{0,400}%s",
    ),
    rule(
        PAGE,
        (".php",),
        r"(?<![\w>$:])(?:echo|print)\b[^;\n]*(?<!\()\$_(?:GET|POST|REQUEST|COOKIE)\b(?![^;\n]*(?:htmlspecialchars|htmlentities"
        r"|intval))(?<!htmlspecialchars\(\$_GET)",
    ),
    rule(PAGE, (".rb", ".erb"), r"\braw\s*\(?\s*params|params\[[^\]]*\]\.html_safe|<%==\s*params"),
    rule(
        PAGE, JVM, r"getWriter\(\)\s*\.(?:print|println|write)\([^;\n]*(?:\+\s*\w*[rR]eq\w*\.getParameter|\"<[^\"]{0,400}\"\s*\+)"
    ),
    rule(
        PAGE,
        (".html", ".j2", ".jinja", ".jinja2", ".htm"),
        r"\{\{[^}]*\|\s*safe\b[^}]*\}\}|\{%-?\s*autoescape\s+(?:false|off)|<%-\s*\w|\{\{\{\s*\w",
    ),
)
