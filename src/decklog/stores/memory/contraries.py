"""Words that turn advice round. Data; a pair is two words in their plain form.

Two lessons that differ in one place alone are told apart without them; they are needed where more than that differs.
"""

_LINES = """
above/below accept/decline accept/refuse accept/reject acquire/release add/remove ahead/behind all/none allow/deny
allow/forbid allow/prevent always/never any/none ascending/descending attach/detach before/after begin/end beginning/end
big/small block/unblock both/neither bottom/top client/server close/open commit/revert create/delete decrease/increase
deny/grant deprecated/mandatory destroy/create disable/enable down/up drop/keep early/late empty/full encrypt/decrypt
even/only everyone/nobody everything/nothing exclude/include exclusive/inclusive exclusive/shared expand/collapse
external/internal fail/pass fail/succeed false/true fast/slow faster/slower few/many fewer/more first/last fixed/random
forbid/permit forward/backward from/to global/local grant/revoke greater/less grow/shrink hard/soft hide/show high/low
higher/lower ignore/heed import/export in/out include/omit input/output inside/outside install/uninstall into/from join/split
keep/delete keep/drop keep/remove keep/skip large/small left/right lenient/strict less/more little/much load/unload
lock/unlock long/short longer/shorter lower/raise lower/upper mandatory/optional manual/automatic maximum/minimum may/must
merge/split most/none mount/unmount narrow/wide negative/positive new/old newest/oldest next/previous none/some off/on
offline/online old/new older/newer on/off open/closed optional/required over/under parallel/serial parent/child
primary/replica private/public production/staging pull/push rarely/often read/write refuse/permit relative/absolute
required/optional reveal/hide right/wrong safe/unsafe same/different send/receive share/vendor simple/complex single/multiple
slow/fast start/stop static/dynamic strong/weak synchronous/asynchronous text/binary tight/loose together/apart trust/distrust
upgrade/downgrade use/avoid usually/never valid/invalid with/without
"""
PAIRS = tuple((one, other) for one, _, other in (pair.partition("/") for pair in _LINES.split()))
NEGATIONS = frozenset(
    ("avoid", "except", "neither", "never", "no", "nobody", "none", "nor", "not", "nothing", "unless", "without"),
)
# What turns a word round that begins with it.
PREFIXES = ("un", "in", "non", "dis", "de", "im", "ir", "a", "mis")
# What thanks and praise are made of, what reports of success have besides, and what neither of them says.
COURTESIES = frozenset(
    (
        *("thanks", "thank", "great", "nice", "awesome", "excellent", "perfect", "congratulations", "welcome", "well"),
        *("worked", "liked", "love", "loved", "happy", "progress", "successfully", "green", "glad"),
    )
)
SUCCESSES = frozenset(
    ("done", "passed", "passing", "finished", "completed", "complete", "everything", "team", "task", "job", "tests", "now")
)
ADVICE = frozenset(
    (
        *("always", "avoid", "because", "before", "keep", "must", "need", "never", "no", "not", "only", "prefer", "should"),
        *("unless", "use", "when", "without"),
    )
)
