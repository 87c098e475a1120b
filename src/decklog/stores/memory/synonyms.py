"""Senses: words that people use for the same thing when software fails. Data; add a line where a word is missing.

A line is the name of a sense and its words in their dictionary form; two words that belong together are joined by `_`. After a
change, `memory.reindex` brings older lessons up to date.
"""

_LINES = """
hang: hang stuck freeze frozen deadlock block stall unresponsive forever halt wedge livelock endless endlessly never_return
hang: never_end never_finish ages spin standstill seize jam unfinished outstanding
wait: wait sleep pause delay poll hold idle queue pending ready await sit linger
crash: crash segfault panic abort die dead kill sigkill sigsegv terminate core_dump fault blow break collapse outage fail_hard
crash: fatal abnormal
start: start startup boot launch begin init initialise initialize spawn run execute come_alive fire begin_run bring
stop: stop end exit quit shutdown terminate halt finish close cancel teardown drain stopping
restart: restart reboot relaunch reload crash_loop bounce respawn recreate reschedule evict
oom: oom memory ram heap swap oomkilled 137 allocation exhaust gigabyte eat_memory ram_usage footprint
grow: grow climb leak unbounded accumulate pile increase balloon bloat rise swell never_free unlimited expand
leak: leak retain release unclosed never_close dispose free cleanup
slow: slow latency performance sluggish lag speed fast throughput expensive quadratic bottleneck ages minutes seconds crawl
slow: quick quicker faster slower response_time cpu_time hot profile optimise optimize
timeout: timeout time_limit deadline expire elapsed timed limit lasts lengthy overdue long_running
race: race concurrent concurrency parallel simultaneous interleave side_side two_worker several_process collide overlap
race: multiple second_worker two_process two_request
lock: lock mutex semaphore exclusive busy contention latch claim hold owner another_instance held acquire
lostupdate: lost_update overwrite clobber last_write increment counter vanish lose lost overwrote overwritten older_wins newer
flaky: flaky intermittent sporadic random occasional sometimes nondeterministic unstable flake chance unreliable passes_fails
flaky: green_red rarely seldom sporadically unpredictable reproduce reproducible
order: order sequence sort shuffle ordering arrange sorted arrangement differently position place rank
time: time clock date timestamp datetime hour day epoch second millisecond elapsed duration moment wall_clock synchronise
time: synchronisation ntp
midnight: midnight night tonight twelve day_change today tomorrow date nightly overnight evening
timezone: timezone time_zone utc offset tz local_time localtime zone region berlin york america europe asia abroad utc_offset
dst: dst daylight summer winter autumn spring clock_change clocks_went clocks_back hour_twice change_clock season seasonal
dst: shift_hour next_summer
schedule: schedule cron nightly job task periodic timer weekly daily scheduler crontab recurring interval background_job
month: month calendar year yearly week february leap 29 quarter annual renewal birthday anniversary expiry_date last_day
month: end_month
clockskew: skew drift ntp leeway issued future clock_differ
encoding: encoding unicode utf utf8 charset ascii latin1 decode encode codec umlaut accent emoji mojibake garble garbled
encoding: character symbol gibberish letter text german french special_char destroyed mangle odd_symbol
invisible: invisible bom hidden strange weird zero_width mark utf_8 nbsp
newline: newline line_ending ending crlf lf carriage eol autocrlf line_break entire_file endings line_feed
path: path directory folder file location filename dir cwd subfolder tree subdirectory
missing: missing absent enoent undefined lack unavailable gone nonexistent disappear unable_find unknown nowhere blank
disappear: disappear vanish lost lose gone erase wipe delete remove clobber swallow removed cleared discard drop destroy undo
permission: permission denied eacces chmod forbidden 403 access privilege root sudo owner right readonly allow refuse owns
permission: belong uid account group readable world_readable
auth: auth authentication login credential token password sign unauthorized 401 session bearer jwt signin key identity sso
auth: oauth api_key issued credentials
secret: secret credential token password apikey vault sensitive private confidential credentials passphrase personal
certificate: certificate tls ssl https handshake x509 chain root intermediate verification verify trust issuer untrusted
certificate: trusted self_signed
expire: expire expiry expired lapse old valid ttl invalid outdated become_invalid
network: network connection socket host port http unreachable offline internet peer remote client connect reach machine talk
network: link vpn wire transport address
refused: refuse reject deny decline unreachable connection_refused unable turn_away blocked
dns: dns resolve hostname name_resolution lookup domain
port: port listen bind eaddrinuse occupied socket address taken published mapped answer
retry: retry backoff repeat attempt resend redo rerun try tries immediately storm hammer jitter
duplicate: duplicate twice double repeat redundant second_time two_times copy second another_time repeated
idempotent: idempotent idempotency charge bill payment deliver order retried
money: money payment charge bill invoice cent penny price cart total currency amount cost dollar euro sum accounting
money: payment_provider finance fee balance
float: float decimal rounding precision fraction tiny floating round exact decimal_places cents half rounded
number: number integer int count digit numeric value
overflow: overflow wrap negative maximum int32 2147483647 limit exceed figure sum_negative 32 64 bit sixty_four truncates
dependency: dependency package library module requirement transitive third_party libraries lib package_manager vendor
install: install setup pip npm package wheel add reinstall global globally system_wide add_package installing
version: version upgrade downgrade pin release incompatible bump mismatch update semver drift major newer older
version: different_release newest series revision
lockfile: lockfile lock_file pin frozen reproducible locked exact_version package_lock declared declared_version drift
conflict: conflict clash collide incompatible merge overlap contradict collision
import: import module require modulenotfounderror importerror load package include load_module loading
cycle: cycle circular cyclic loop mutual
recursion: recursion recursive infinite endless stack_overflow depth nested deep nested_call depth_limit
build: build compile link bundle toolchain compiler linker recompile compilation source declaration header object_file rebuild
build: output_identical
bundle: bundle asset frontend javascript webpack chunk static minify
ci: ci pipeline workflow runner github_actions job continuous_integration build_server build_machine agent allowance minutes
ci: automation checks job_run build_log
cache: cache stale cached memo invalidate reuse reload refresh clear entry popular hot_key restore restored
stale: stale outdated old obsolete previous earlier yesterday former refresh outdated_value retired decommissioned replaced
container: container docker image podman dockerfile compose pod layer base_image mount
kubernetes: kubernetes k8s pod deployment cluster kubectl helm node orchestrator replica rollout
disk: disk space storage full enospc volume quota inode df partition filesystem mount
database: database db sql query table postgres postgresql mysql sqlite row mongo engine statement select tables record records
database: rows
query: query select statement sql request hundred n1 filter result exclusion
schema: schema column alter migration migrate ddl table field mandatory required_column
index: index slow_query scan lookup full_table seq_scan explain
transaction: transaction commit rollback atomic isolation begin savepoint transfer
constraint: constraint unique foreign_key primary_key duplicate_key
null: null none nil undefined nullpointer missing empty optional blank unset unknown value_missing
config: config configuration setting option flag parameter settings preference influence toggle switch
environment: environment env variable export
parameter: parameter argument default kwarg option omit pass arg
mock: mock stub patch fake double spy monkeypatch
test: test spec suite pytest jest unittest case automation check suite_run unit integration
assertion: assertion assert expect equality tolerance
fixture: fixture setup teardown cleanup isolation shared_state conftest
isolation: isolation independent pollute shared_state global interfere alone everything together left_behind side_effect
isolation: following influence leftover pollution carry afterwards
ready: ready readiness healthy health available probe alive liveness accept
coverage: coverage untested caught notice uncaught survive escape
git: git repository repo commit checkout clone vcs version_control teammate colleague push remote repository_history
branch: branch head ref detached checkout switch merge_base tip
rewrite: rebase squash history rewrite force_push cherry_pick amend force overwritten remote_branch
history: history log past depth shallow tag full_history fetch_depth
diff: diff change modified differ difference compare edited edit modification alter cosmetic
submodule: submodule nested recurse
hook: hook pre_commit trigger
lint: lint format style linter prettier ruff eslint formatter whitespace cosmetic formatting reformat indent
type: type typing annotation mypy typescript cast typeerror
syntax: syntax parse grammar malformed invalid unexpected
json: json serialise serialize payload deserialise identifier identifiers id ids
parse: parse read decode interpret deserialise deserialize
csv: csv column spreadsheet excel field comma header tsv
escape: escape quote quoting inject injection sanitise sanitize special_character blank space spaces blank_name word_split
shell: shell bash command script terminal sh zsh
exitcode: exit return_code status exit_code code success report unnoticed nonzero failing_command
pipe: pipe stage pipefail stdout stdin stream redirect middle
signal: signal sigterm sigint interrupt ctrl graceful handler press_ctrl keyboardinterrupt hard_kill stop_signal grace
process: process subprocess child fork spawn zombie daemon worker pid instance active_process running_instance
thread: thread worker pool goroutine routine threads coroutine core cores cpu parallelism multicore executor slot pool_size
async: async await asyncio coroutine promise event_loop callback future handler asynchronous asynchronously unhandled
async: rejection callbacks promises awaited
buffer: buffer flush chunk
log: log logging output print trace message
symlink: symlink link symbolic junction alias escape_root traversal sandbox sandbox_escape
case: case uppercase lowercase capital sensitive insensitive casing
mac: mac macos osx darwin apple m1 laptop
windows: windows win32 ntfs powershell cp1252 microsoft
arch: arch architecture arm64 aarch64 x86 amd64 platform cpu arm processor exec_format wrong_cpu m1
native: native binary shared_library glibc musl abi libc extension symbol
browser: browser chrome firefox safari dom page web cors origin cookie website embed embedded iframe cross_site
frontend: frontend browser react css ui interface screen component button menu modal layout draw drawn widget
render: render display show draw paint appear visible shown drawn
api: api endpoint rest request response http route url
fetch: fetch download pull request url call
throttle: rate throttle 429 quota limit often ask_often
pagination: pagination page cursor offset next limit first_100 listing later_page later_pages scroll
webhook: webhook callback event notification deliver
queue: queue broker message kafka rabbitmq backlog consumer job redeliver item background background_work broken_item
backup: backup restore recover dump
deploy: deploy release rollout ship publish production live launch weekend friday
rollback: rollback revert undo previous_version previous_release undoing undone
regex: regex pattern expression match backtrack matcher regexp pathological string
seed: random seed shuffle entropy reproducible deterministic reproduce rare rarely
locale: locale language collation region lang turkish country
hash: hash digest checksum sha fingerprint integrity
corrupt: corrupt damage broken garbage truncate torn corrupted half destroyed spoiled malformed
partial: partial half incomplete torn truncate truncated empty atomic rename temporary torn_apart
size: size large big huge length long line giant small enormous big_file large_file oversized
limit: limit maximum cap ceiling quota ulimit exceed boundary restricted bounded allowed
descriptor: descriptor fd file_handle handle emfile ulimit open_file open resource exhaust
executable: executable chmod mode bit exec
copy: copy clone reference shallow deep
mutable: mutable default shared mutate earlier_call previous_call remember_value
closure: closure capture late_binding lambda loop_variable last_value final_item last_item
scope: scope global local shadow
error: error exception failure fail traceback problem wrong
swallow: swallow ignore silent suppress mask bare_except quiet unnoticed hide hidden success trace_hidden eaten
warning: warning deprecation deprecate notice
boundary: boundary edge inclusive exclusive fencepost last exact maximum ending_five final
download: download mirror registry index proxy
tag: tag label latest digest
proxy: proxy nginx load_balancer gateway reverse 502 504 upstream bad_gateway
scale: scale replica autoscale instance overload
uitest: selenium playwright cypress element click screenshot
preference: prefer preference convention rule ask
review: review reviewer approve comment pull_request pr feedback reject contribution contributor merge_request code_review
small: small short tiny minimal concise split
document: document docs readme docstring changelog
rename: rename move name
refactor: refactor restructure rewrite clean
remove: remove delete drop erase purge rm dropped cleared
customer: customer user client people tenant account outsider contributor team everybody somebody
attempt: attempt retry try tries times number
negative: negative minus sign underflow
server: server service backend app application program host machine box node instance system
reproducible: reproducible identical deterministic byte_identical repeatable timestamp
load: load traffic overload popular burst spike
broker: broker kafka rabbitmq message_queue
friday: friday weekend saturday sunday afternoon evening holiday
patch: patch replace replacement edit rewrite_file
visible: visible exposed leak appear_log printed diagnostic debug
idle: idle inactive unused
chain: chain intermediate bundle
bool: true false flag
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
