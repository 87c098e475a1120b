"""Senses: words that people use for the same thing when software fails. Data; add a line where a word is missing.

A line is the name of a sense and its words in their dictionary form; two words that belong together are joined by `_`. After a
change, `memory.reindex` brings older lessons up to date.
"""

_LINES = """
hang: hang stuck freeze frozen deadlock block stall unresponsive forever halt wedge
hang: livelock endless endlessly still stand_still lock_up never_return never_end never_finish ages spin
wait: wait sleep pause delay poll hold idle queue pending until ready
crash: crash segfault panic abort die dead kill sigkill sigsegv terminate core_dump fault fall_over bring_down blow break
start: start startup boot launch come_up begin init initialise initialize bring_up spawn run execute
stop: stop end exit quit shutdown terminate halt finish close cancel
restart: restart reboot relaunch reload crash_loop bounce respawn
oom: oom memory ram heap swap oomkilled 137 allocation exhaust
grow: grow climb leak unbounded accumulate pile increase balloon bloat rise swell never_free
leak: leak retain release unclosed never_close dispose free cleanup
slow: slow latency performance sluggish lag speed fast throughput
slow: expensive quadratic bottleneck ages minutes seconds takes_long crawl
timeout: timeout time_limit deadline expire elapsed timed limit give_up
race: race concurrent concurrency parallel simultaneous interleave same_time at_once side_side two_worker several_process
lock: lock mutex semaphore exclusive busy contention latch claim hold
lostupdate: lost_update overwrite clobber last_write increment counter vanish lose lost
flaky: flaky intermittent sporadic random occasional sometimes nondeterministic
flaky: unstable flake chance unreliable now_then once_while passes_fails green_red
order: order sequence sort shuffle ordering arrange sorted out_order
time: time clock date timestamp datetime hour day epoch second millisecond
midnight: midnight night tonight twelve day_change today tomorrow date nightly overnight evening
timezone: timezone time_zone utc offset tz local_time localtime zone region
dst: dst daylight summer winter autumn spring clock_change clocks_went clocks_back clocks_go hour_twice change_clock
schedule: schedule cron nightly job task periodic timer weekly daily
month: month calendar year yearly week february leap 29 quarter annual renewal birthday
clockskew: skew drift ntp not_yet leeway issued just_issued future clock_differ
encoding: encoding unicode utf utf8 charset ascii latin1 decode encode
encoding: codec umlaut accent emoji mojibake garble garbled character symbol gibberish
invisible: invisible bom hidden strange weird zero_width mark utf_8 nbsp
newline: newline line_ending ending crlf lf carriage eol autocrlf line_break entire_file every_line whole_file
path: path directory folder file location filename dir cwd
missing: missing absent not_found enoent undefined lack unavailable gone nonexistent disappear want without no_such
disappear: disappear vanish lost lose gone erase wipe delete remove clobber swallow
permission: permission denied eacces chmod forbidden 403 access privilege root sudo owner right readonly allow refuse
auth: auth authentication login credential token password sign unauthorized 401 session bearer jwt signin log_in key
secret: secret credential token password apikey vault sensitive private
certificate: certificate tls ssl https ca handshake x509 chain root intermediate verification verify trust
expire: expire expiry expired lapse run_out out_date old valid ttl
network: network connection socket host port http unreachable offline internet peer remote client connect reach
refused: refuse reject deny decline unreachable connection_refused unable
dns: dns resolve hostname name_resolution lookup domain
port: port listen bind eaddrinuse address_use occupied socket address
retry: retry again backoff repeat attempt resend redo rerun try tries
duplicate: duplicate twice double repeat redundant second_time two_times again copy more_than_once
idempotent: idempotent idempotency charge bill payment deliver order retried exactly_once
money: money payment charge bill invoice cent penny price cart total currency amount cost dollar euro sum
float: float decimal rounding precision fraction tiny floating round exact
number: number integer int count digit numeric value
overflow: overflow wrap negative maximum int32 2147483647 limit exceed too_large
dependency: dependency package library module requirement transitive third_party
install: install setup pip npm package wheel add
version: version upgrade downgrade pin release incompatible bump mismatch update semver drift major newer older
lockfile: lockfile lock_file pin frozen reproducible locked exact_version package_lock
conflict: conflict clash collide incompatible merge overlap contradict collision
import: import module require modulenotfounderror importerror load package include
cycle: cycle circular cyclic loop mutual each_other one_another
recursion: recursion recursive infinite endless stack_overflow depth nested deep
build: build compile link make bundle toolchain compiler linker
bundle: bundle asset frontend javascript webpack chunk static minify
ci: ci pipeline workflow runner github_actions job continuous_integration build_server build_machine agent
cache: cache stale cached memo invalidate reuse reload refresh clear
stale: stale outdated old obsolete previous earlier yesterday former no_longer refresh
container: container docker image podman dockerfile compose pod
kubernetes: kubernetes k8s pod deployment cluster kubectl helm node
disk: disk space storage full enospc volume quota inode df
database: database db sql query table postgres postgresql mysql sqlite row mongo engine statement select
query: query select statement sql request hundred n1 per_row each_row one_row
schema: schema column alter migration migrate ddl table field
index: index slow_query scan lookup full_table seq_scan explain
transaction: transaction commit rollback atomic isolation begin savepoint transfer
constraint: constraint unique foreign_key not_null primary_key duplicate_key
null: null none nil undefined nullpointer missing empty optional blank unset
config: config configuration setting option flag parameter settings preference
environment: environment env variable export
parameter: parameter argument default kwarg option leave_out omit pass
mock: mock stub patch fake double spy monkeypatch
test: test spec suite pytest jest unittest case
assertion: assertion assert expect equality tolerance
fixture: fixture setup teardown cleanup isolation shared_state conftest
isolation: isolation independent pollute shared_state global interfere
isolation: alone itself everything together whole_suite left_behind side_effect
ready: ready readiness up healthy health available probe alive liveness accept
coverage: coverage untested caught notice uncaught survive escape
git: git repository repo commit checkout clone vcs
branch: branch head ref detached checkout switch
rewrite: rebase squash history rewrite force_push cherry_pick amend force
history: history log past depth shallow tag full_history fetch_depth
diff: diff change modified differ difference compare
submodule: submodule nested recurse
hook: hook pre_commit trigger
lint: lint format style linter prettier ruff eslint formatter whitespace
type: type typing annotation mypy typescript cast typeerror
syntax: syntax parse grammar malformed invalid unexpected
json: json serialise serialize payload deserialise
parse: parse read decode interpret deserialise deserialize
csv: csv column spreadsheet excel field comma header tsv
escape: escape quote quoting inject injection sanitise sanitize special_character blank space
shell: shell bash command script terminal sh zsh
exitcode: exit return_code status exit_code code success report unnoticed
pipe: pipe stage pipefail stdout stdin stream redirect middle
signal: signal sigterm sigint interrupt ctrl graceful handler
process: process subprocess child fork spawn zombie daemon worker pid
thread: thread worker pool goroutine routine threads coroutine
async: async await asyncio coroutine promise event_loop callback future handler
buffer: buffer flush chunk
log: log logging output print trace message
symlink: symlink link symbolic junction alias
case: case uppercase lowercase capital sensitive insensitive casing
mac: mac macos osx darwin apple m1 laptop
windows: windows win32 ntfs powershell cp1252
arch: arch architecture arm64 aarch64 x86 amd64 platform cpu arm processor exec_format wrong_cpu m1
native: native binary shared_library glibc musl abi libc extension symbol
browser: browser chrome firefox safari dom page web cors origin cookie
frontend: frontend browser react css ui interface screen component
render: render display show draw paint appear
api: api endpoint rest request response http route url
fetch: fetch download pull get request url call
throttle: rate throttle 429 quota too_many limit
pagination: pagination page cursor offset next limit first_100
webhook: webhook callback event notification deliver
queue: queue broker message kafka rabbitmq backlog consumer job redeliver
backup: backup restore recover dump
deploy: deploy release rollout ship publish production live launch
rollback: rollback revert undo back_out previous_version
regex: regex pattern expression match backtrack matcher regexp pathological string
seed: random seed shuffle entropy reproducible deterministic reproduce
locale: locale language collation region lang turkish country
hash: hash digest checksum sha fingerprint integrity
corrupt: corrupt damage broken garbage truncate torn corrupted half
partial: partial half incomplete torn truncate truncated empty atomic rename temporary
size: size large big huge length long line giant small
limit: limit maximum cap ceiling quota ulimit exceed boundary
descriptor: descriptor fd file_handle handle emfile ulimit open_file open too_many
executable: executable chmod mode bit exec
copy: copy clone reference shallow deep
mutable: mutable default shared mutate in_place carry_over earlier_call previous_call
closure: closure capture late_binding lambda loop_variable last_value
scope: scope global local shadow
error: error exception failure fail traceback problem wrong
swallow: swallow ignore silent suppress mask bare_except quiet unnoticed hide hidden success
warning: warning deprecation deprecate notice
boundary: boundary edge off_one inclusive exclusive fencepost last exact maximum
download: download mirror registry index proxy
tag: tag label latest digest
proxy: proxy nginx load_balancer gateway reverse 502 504 upstream bad_gateway
scale: scale replica autoscale instance overload
uitest: selenium playwright cypress element click screenshot
preference: prefer preference convention want rule ask
review: review reviewer approve comment pull_request pr feedback reject
small: small short tiny minimal concise split under few
document: document docs readme docstring changelog
rename: rename move name
refactor: refactor restructure rewrite clean
remove: remove delete drop erase purge rm
customer: customer user client people tenant account
attempt: attempt retry try tries times number
"""


def _read(lines: str) -> dict[str, tuple[str, ...]]:
    senses: dict[str, list[str]] = {}
    for line in lines.strip().splitlines():
        name, _, words = line.partition(": ")
        for word in words.split():
            senses.setdefault(word, []).append(f"x{name.replace('_', '')}0")
    return {word: tuple(names) for word, names in senses.items()}


# Each word with the names of its senses. A name ends in 0 so that no stemmer changes it and no word of a text equals it.
SENSES = _read(_LINES)
