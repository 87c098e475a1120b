"""Senses: words that people use for the same thing when software fails. Data; add a line where a word is missing.

A line is the name of a sense and its words in their dictionary form; two words that belong together are joined by `_`. After a
change, `memory.reindex` brings older lessons up to date.
"""

_LINES = """
hang: hang stuck freeze frozen deadlock block stall unresponsive forever halt wait wedge livelock idle
crash: crash segfault panic abort die dead kill sigkill sigsegv terminate core_dump fault
oom: oom memory ram heap swap oomkilled 137 leak allocation exhaust
slow: slow latency performance sluggish lag speed fast delay throughput expensive quadratic bottleneck
timeout: timeout time_limit deadline expire elapsed timed slow
race: race concurrent concurrency parallel thread simultaneous interleave atomic lock mutex synchronise synchronize
lock: lock mutex semaphore exclusive busy contention latch
flaky: flaky intermittent sporadic random occasional sometimes nondeterministic unstable flake chance unreliable
order: order sequence sort shuffle first before ordering arrange
time: time clock date timestamp datetime hour midnight day epoch
timezone: timezone time_zone utc dst daylight offset tz local_time localtime summer
encoding: encoding unicode utf utf8 charset ascii latin1 decode encode codec umlaut accent emoji mojibake garble byte
newline: newline line_ending crlf lf carriage eol autocrlf line_break
path: path directory folder file location filename dir cwd
missing: missing absent not_found enoent undefined lack unavailable gone nonexistent vanish disappear lost
permission: permission denied eacces chmod forbidden 403 access privilege root sudo owner readonly
auth: auth authentication login credential token password sign unauthorized 401 session bearer
secret: secret credential token password key apikey leak vault
certificate: certificate tls ssl https ca handshake x509 self_signed expire
network: network connection socket dns host port http unreachable offline proxy firewall internet
refused: refuse reject deny decline connection_refused unreachable
dns: dns resolve hostname name_resolution lookup domain
port: port listen bind eaddrinuse address_use occupied socket
retry: retry again backoff repeat attempt resend redo rerun
idempotent: idempotent duplicate twice repeat double once dedupe
duplicate: duplicate copy twice double repeat redundant clone
dependency: dependency package library module requirement version lockfile transitive vendor
install: install setup pip npm package wheel build dependency
version: version upgrade downgrade pin release incompatible bump mismatch update semver
conflict: conflict clash collide incompatible merge overlap contradict
import: import module require modulenotfounderror importerror load package include
cycle: cycle circular cyclic loop recursive mutual
recursion: recursion recursive infinite endless stack_overflow depth loop
build: build compile link make bundle artifact toolchain compiler
ci: ci pipeline workflow runner github_actions job continuous_integration build_server
cache: cache stale cached outdated memo invalidate reuse
stale: stale outdated old obsolete expired previous earlier cached
container: container docker image podman dockerfile compose kubernetes pod
kubernetes: kubernetes k8s pod deployment cluster kubectl helm
disk: disk space storage full enospc volume quota inode
database: database db sql query table schema postgres mysql sqlite row
migration: migration schema alter upgrade column migrate
index: index slow_query scan lookup full_table
transaction: transaction commit rollback atomic isolation begin
null: null none nil undefined nullpointer missing empty optional
overflow: overflow wrap truncate integer limit range bound
float: float decimal rounding precision money cent rounding_error
memoryleak: leak grow unbounded accumulate retain gc garbage
config: config configuration setting environment env variable option flag parameter
environment: environment env variable export shell path
mock: mock stub patch fake double spy monkeypatch
test: test spec suite pytest jest assertion unittest case
fixture: fixture setup teardown cleanup isolation shared_state conftest
isolation: isolation independent leak pollute shared_state global interfere
assertion: assertion assert expect compare equal mismatch
coverage: coverage untested covered branch
snapshot: snapshot golden baseline expected
git: git repository commit branch checkout clone
branch: branch head ref detached checkout
rebase: rebase merge squash history rewrite force_push cherry_pick
lost: lost lose overwrite vanish disappear clobber wipe delete erase gone
delete: delete remove drop erase purge wipe rm
history: history log commit past previous
shallow: shallow depth fetch_depth partial
submodule: submodule nested vendor
hook: hook pre_commit trigger callback
lint: lint format style linter prettier ruff eslint formatter
type: type typing annotation mypy typescript cast
syntax: syntax parse grammar token malformed invalid
json: json serialise serialize payload deserialise parse
parse: parse read decode interpret deserialise deserialize
escape: escape quote quoting inject injection sanitise sanitize special_character
shell: shell bash command script terminal sh zsh
exit: exit return_code status quit exit_code terminate
signal: signal sigterm sigint interrupt kill ctrl graceful
process: process subprocess child fork spawn zombie daemon worker
thread: thread worker pool concurrent gil goroutine async
async: async await asyncio coroutine promise event_loop callback future
buffer: buffer flush pipe stdout stream output
pipe: pipe stdout stdin stream buffer redirect
log: log logging output print trace message
symlink: symlink link junction alias
case: case uppercase lowercase capital sensitive insensitive
mac: mac macos osx darwin apple
windows: windows win32 ntfs powershell
arch: arch architecture arm64 aarch64 x86 amd64 platform cpu arm
native: native binary shared_library glibc musl linker abi
cors: cors origin browser preflight cross
cookie: cookie session samesite login
frontend: frontend browser react dom css page ui
render: render display show draw paint page
hydrate: hydrate hydration ssr server_render
api: api endpoint request response http rest
rate: rate throttle 429 quota limit too_many
pagination: pagination page cursor offset limit
webhook: webhook callback event notification
queue: queue broker message job kafka rabbitmq backlog
event: event message notification signal
backup: backup restore recover dump snapshot
restart: restart reboot relaunch reload crash_loop
deploy: deploy release rollout ship publish production
rollback: rollback revert undo restore back_out
regex: regex pattern expression match backtrack
random: random seed shuffle entropy uuid nondeterministic
seed: seed random reproducible deterministic
sort: sort order locale collation compare
locale: locale language collation region lang decimal_comma
hash: hash digest checksum sha fingerprint integrity
checksum: checksum integrity hash corrupt mismatch
corrupt: corrupt damage broken garbage invalid truncate torn
partial: partial half incomplete torn truncate atomic
size: size large big huge limit length long
limit: limit maximum cap ceiling quota ulimit exceed too_many
descriptor: descriptor fd file_handle emfile ulimit too_open handle
permissionbit: executable chmod mode bit
readonly: readonly read_only immutable write_protect
copy: copy clone duplicate alias reference shallow deep
mutable: mutable default shared mutate alias in_place
closure: closure capture late_binding lambda loop_variable
scope: scope global local shadow leak
error: error exception failure fail traceback problem wrong
swallow: swallow ignore silent suppress hide mask bare_except quiet
silent: silent quiet unnoticed without_error hidden
warning: warning deprecation deprecate notice
unused: unused dead unreachable stale
compare: compare equal equality identical diff
null_byte: nul zero_byte
download: download fetch pull clone registry mirror
registry: registry mirror index pypi npm package_index
publish: publish release upload push
tag: tag label version latest
pin: pin lock freeze exact digest lockfile
proxy: proxy nginx load_balancer gateway reverse 502 504
gateway: gateway 502 504 503 upstream bad_gateway
health: health readiness liveness probe alive check
scale: scale replica horizontal autoscale instance
index_error: out_range bound off_one boundary
boundary: boundary edge off_one inclusive exclusive limit fencepost
leap: leap february 29
month: month calendar year date
sleep: sleep wait poll delay pause
poll: poll wait check repeat interval
ui_test: selenium playwright cypress browser element click
headless: headless browser chrome display xvfb
gpu: gpu cuda device vram driver
ml: model training inference dataset
preference: prefer preference style want ask convention
review: review reviewer approve comment pull_request pr feedback
small: small short tiny minimal concise split
large: large big huge long giant
document: document docs readme comment docstring changelog
rename: rename move name refactor
refactor: refactor restructure cleanup rename rewrite
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
