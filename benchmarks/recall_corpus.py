"""A labelled set for recall: lessons about real kinds of software failure, and questions that put them in other words.

A lesson is `id | topic | text`; the topics are the eight that every log knows. A question is `ids | text`: the ids of the lessons that
answer it. The groups of words in `decklog.stores.senses` were fixed before any question was written, the weights of the ranking were
chosen on the questions in `TUNING` alone, and the questions in `HELD_OUT` were written after that and never tuned on.
"""

_LESSONS = """
py-venv | failure_patterns | Installing into the system interpreter broke the distribution's own tools; create a virtualenv and call its pip
py-editable | failure_patterns | An editable install hides files missing from the wheel; build the wheel and run the tests against that
py-namespace | failure_patterns | A folder called tests without __init__.py shadowed the package of the same name on sys.path
py-circular | failure_patterns | Circular import between models and services raised ImportError at start; import inside the function instead
py-mutable | failure_patterns | A list as default argument was shared by all calls; default to None and create it inside
py-latebind | failure_patterns | Lambdas made in a loop all saw the last value; bind it as a default argument
py-metadata | failure_patterns | Version in pyproject.toml and in __init__ drifted apart; read it with importlib.metadata
py-extras | failure_patterns | Optional dependency imported at module level made the base install fail; import lazily where it is used
py-abi | failure_patterns | Compiled extension built for another Python minor version gave undefined symbol; rebuild wheels per interpreter
py-musl | failure_patterns | manylinux wheels do not install on Alpine because of musl; use a slim Debian image
py-pickle | failure_patterns | Unpickling failed after a class moved to another module; store data as JSON with a version field
py-gil | failure_patterns | Threads did not speed up CPU-bound parsing because of the GIL; use processes
py-asyncblock | failure_patterns | A requests call inside a coroutine blocked the event loop; use an async client or run_in_executor
py-awaitmissing | failure_patterns | A coroutine was never awaited so nothing happened; turn the RuntimeWarning into an error in tests
py-bareexcept | failure_patterns | A bare except swallowed KeyboardInterrupt and hid the real traceback; catch the narrow exception
py-generator | failure_patterns | A generator was consumed twice and the second loop was empty; turn it into a list first
py-hashseed | flaky_tests | Iteration order of sets changed between runs because of hash randomisation; sort before comparing
py-warnings | em_preferences | Treat warnings as errors in the test configuration so that deprecations are seen early
js-lockfile | failure_patterns | npm install rewrote package-lock.json in the pipeline; use npm ci there
js-peer | failure_patterns | Conflicting peer dependencies gave two copies of React and broken hooks; dedupe the tree
js-esm | failure_patterns | require() of an ES module throws ERR_REQUIRE_ESM; switch to dynamic import or pin the older major
js-this | failure_patterns | A method passed as callback lost its receiver; bind it or use an arrow function
js-promise | failure_patterns | A promise rejection without catch ended the Node process; add a handler to every chain
js-foreach | failure_patterns | await inside forEach does not wait; use for...of or Promise.all
js-float | failure_patterns | 0.1 + 0.2 was not 0.3 in the cart total; count in integer cents
js-date | failure_patterns | new Date with a date-only string is parsed as UTC and shows the previous day in America
js-hydration | failure_patterns | Server and client rendered different markup because of Date.now, so hydration failed; render it in an effect
js-heap | failure_patterns | The bundler died with JavaScript heap out of memory; raise max-old-space-size or split the bundle
js-watch | failure_patterns | File watcher hit ENOSPC although the disk was empty; raise fs.inotify.max_user_watches
js-cors | failure_patterns | Browser blocked the request by CORS since the preflight OPTIONS got 404; answer it with the allow headers
js-cookie | failure_patterns | Session cookie was not sent on cross-site requests; set SameSite=None and Secure
js-bigid | failure_patterns | 64-bit ids lost their last digits in JSON.parse; send them as strings
js-stale | failure_patterns | Effect closed over old state and showed outdated values; list it in the dependency array
js-zindex | failure_patterns | Modal was hidden behind the header because a parent created a stacking context
js-cache | failure_patterns | Users kept the old bundle after a release; put a content hash in the file names
js-node | failure_patterns | node-gyp failed since the runner had a newer Node than .nvmrc; set the version explicitly
go-loopvar | failure_patterns | Goroutines in a loop all used the same variable before Go 1.22; copy it inside the loop
go-nilmap | failure_patterns | Assignment to entry in nil map panicked; make the map in the constructor
go-nilinterface | failure_patterns | An interface holding a nil pointer is not nil; return a plain nil error
go-leak | failure_patterns | Goroutines piled up waiting on a channel nobody reads; pass a context and select on Done
go-defer | failure_patterns | defer inside a long loop kept file handles open until the function ended; move the body into its own function
go-body | failure_patterns | Response bodies that were not closed exhausted connections; always defer resp.Body.Close
go-race | tool_usage_heuristics | Run go test -race on packages with shared maps; it found a write that the tests passed over
go-modproxy | failure_patterns | Private module could not be fetched through the public proxy; set GOPRIVATE
go-cgo | failure_patterns | Binary built with cgo did not start in a scratch image for want of libc; build with CGO_ENABLED=0
go-vendor | failure_patterns | go build used the vendor folder and ignored the upgrade; run go mod vendor after every bump
rust-borrow | failure_patterns | Cannot borrow as mutable more than once: narrow the scope of the first reference or split the struct
rust-unwrap | review_patterns | Reviewers reject unwrap on input from outside; return a Result with context
rust-feature | failure_patterns | Cargo unified features and switched std on in a no_std crate; use resolver 2
rust-openssl | failure_patterns | Cross compiling stopped at openssl-sys; take rustls or vendor the C library
rust-incremental | failure_patterns | Incremental artefacts filled the runner's disk; set CARGO_INCREMENTAL=0 in pipelines
rust-overflow | failure_patterns | Arithmetic wrapped silently in release and panicked in debug; use checked_add
rust-async | failure_patterns | Holding a std Mutex guard across await made the future not Send; use a scope or tokio's mutex
c-uninit | failure_patterns | Reading an uninitialised variable gave different results with optimisation; build with -fsanitize=memory
c-linkorder | failure_patterns | Static libraries listed before the objects that need them gave undefined reference; put them last
c-header | failure_patterns | Stale header dependencies let make skip a rebuild; generate dependency files with -MMD
c-endianness | failure_patterns | Binary file written on a big-endian machine was read wrong; write a fixed byte order
c-useafterfree | failure_patterns | Use after free showed only under load; AddressSanitizer named the line at once
c-cmake | failure_patterns | CMake kept an old compiler from CMakeCache.txt; delete the build folder after changing toolchains
build-parallel | failure_patterns | make -j failed now and then because a generated header was no declared prerequisite
build-repro | failure_patterns | Two builds of one commit differed by embedded timestamps; set SOURCE_DATE_EPOCH
build-gradle | failure_patterns | Gradle daemon kept the old JDK after JAVA_HOME changed; stop the daemon
build-bazel | failure_patterns | Undeclared input worked locally and failed in the sandbox; list it in srcs
build-diskcache | task_outcomes | Moving the compiler cache to a shared volume cut the build from 14 to 4 minutes
ci-fetchdepth | failure_patterns | Checkout with depth 1 has no tags, so the version was computed as 0.0.0; fetch the full history
ci-secretfork | failure_patterns | Secrets are empty in pull requests from forks; skip the publishing step there
ci-cachekey | failure_patterns | Cache key without the lockfile's hash restored outdated dependencies
ci-latest | failure_patterns | ubuntu-latest moved to a new release and system packages were gone; pin the runner image
ci-concurrency | failure_patterns | Two pushes deployed at the same time and the older one won; use a concurrency group
ci-timeout | failure_patterns | A hung job burned six hours of minutes; set timeout-minutes on every job
ci-matrix | failure_patterns | fail-fast cancelled the other matrix jobs and hid their results; set it to false while diagnosing
ci-artifact | failure_patterns | Executable bit was lost in the uploaded artifact; tar it before the upload
ci-skip | failure_patterns | A required check that is skipped by path filters blocks merging for ever; add a job that always reports
ci-nproc | failure_patterns | Tests used the host's 64 CPUs in a container limited to 2 and were throttled; read the cgroup quota
ci-order | task_outcomes | Running lint and types before the tests saved eleven minutes on a red build
ci-token | failure_patterns | The default workflow token can't trigger another workflow; use a deploy key or app token
git-detached | failure_patterns | Commits made on a detached HEAD vanished after checkout; find them with git reflog and branch
git-forcepush | failure_patterns | A force push erased a colleague's commits; use --force-with-lease
git-crlf | failure_patterns | Every line showed as changed since autocrlf rewrote the endings; add .gitattributes with eol=lf
git-case | failure_patterns | Renaming only the case of a file broke imports on Linux while macOS was fine; use git mv in two steps
git-lfs | failure_patterns | Clone gave small pointer files instead of the models; install git-lfs and pull
git-submodule | failure_patterns | Submodule folder was empty after clone; use --recurse-submodules
git-largefile | failure_patterns | A 2 GB dump in the history blocked pushing; rewrite it with git filter-repo
git-hooks | failure_patterns | Pre-commit hook used another formatter version than CI and they undid each other; pin both
git-rebase | failure_patterns | Rebasing a shared branch duplicated commits for everybody; merge instead
git-bisect | tool_usage_heuristics | git bisect run with the failing test found the guilty commit in eight steps
git-safe | failure_patterns | fatal: detected dubious ownership in a mounted repository; add it to safe.directory
git-index | failure_patterns | index.lock was left by a killed process; make sure no git runs, then remove it
git-worktree | tool_usage_heuristics | A worktree per agent keeps parallel changes apart without cloning again
sql-nplus1 | failure_patterns | The list page ran one query per row; load the relation with a join
sql-index | failure_patterns | A filter on lower(email) ignored the index; create an index on the expression
sql-lockorder | failure_patterns | Two transactions updated accounts in different order and deadlocked; always lock by ascending id
sql-longtx | failure_patterns | A transaction left idle kept vacuum from cleaning and the table bloated; set idle_in_transaction_session_timeout
sql-addcolumn | failure_patterns | Adding a column with NOT NULL and no default failed on a filled table; add it nullable, backfill, then constrain
sql-migrationlock | failure_patterns | ALTER TABLE waited behind a report and stalled all readers; set lock_timeout and retry
sql-nullin | failure_patterns | NOT IN with a NULL in the subquery returned no rows; use NOT EXISTS
sql-injection | review_patterns | User input was formatted into the statement; bind parameters
sql-pool | failure_patterns | Connection pool was exhausted because errors skipped close; use a context manager
sql-isolation | failure_patterns | Read then write under READ COMMITTED lost updates; use SELECT FOR UPDATE or one atomic statement
sql-sqlitebusy | failure_patterns | SQLITE_BUSY under two writers; switch to WAL, begin immediate and set a busy timeout
sql-sequence | failure_patterns | After a restore the next insert hit duplicate key since the sequence was behind; setval to the maximum
sql-offset | failure_patterns | OFFSET 500000 scanned everything before it; page by the last seen key
sql-utf8mb4 | failure_patterns | MySQL utf8 cut emoji; convert the table to utf8mb4
sql-timestamp | failure_patterns | timestamp without time zone stored local hours; use timestamptz
sql-count | failure_patterns | Exact count on each request was the slowest query; keep an estimate
sql-stats | failure_patterns | Planner chose a nested loop after a bulk load as statistics were old; run ANALYZE
sql-collation | failure_patterns | Text indexes returned wrong results after a glibc upgrade changed collation; reindex
sql-cascade | failure_patterns | Deleting a tenant took minutes because foreign keys had no index on the child side
sql-savepoint | failure_patterns | One failed statement aborted the whole PostgreSQL transaction; wrap optional steps in savepoints
conc-checkact | failure_patterns | Check-then-act on a file let two workers claim one job; create it exclusively with O_EXCL
conc-doublelock | failure_patterns | Double-checked locking without a barrier returned a half-built object
conc-starve | failure_patterns | Nested tasks in a bounded pool waited for each other and nothing ran; use a separate pool
conc-fork | failure_patterns | Forking with threads running left a lock held in the child; use spawn
conc-signal | failure_patterns | Signal handler called print and the program locked up; only set a flag there
conc-shutdown | failure_patterns | Container ignored SIGTERM because the shell was PID 1; exec the server
conc-zombie | failure_patterns | Children were not waited for and filled the process table; reap them or run an init
conc-atomicwrite | failure_patterns | Readers saw half a config while it was written; write to a temporary file and rename
conc-counter | failure_patterns | Counting visits with read, add, save lost some under load; let the database increment
conc-cachestampede | failure_patterns | When a hot key expired all requests recomputed it and the backend fell over; let one refresh
conc-idempotent | failure_patterns | A retried payment was charged twice; send an idempotency key
conc-queueorder | failure_patterns | Messages of one customer were handled out of order by parallel consumers; partition by customer id
conc-poison | failure_patterns | One malformed message was redelivered for ever; move it to a dead letter queue after five attempts
conc-lease | failure_patterns | A worker paused by GC went on after its lease had expired; fence writes with a token
conc-visibility | failure_patterns | Jobs longer than the visibility timeout were run twice; extend it while working
docker-layer | failure_patterns | Copying the sources before installing requirements rebuilt everything on each change; copy the lockfile first
docker-root | failure_patterns | Files made in the bind mount belonged to root on the host; run with the user's uid
docker-localhost | failure_patterns | The app could not reach the database at localhost from inside the container; use the service name
docker-bindall | failure_patterns | Server listened on 127.0.0.1 and the published port gave connection refused; listen on 0.0.0.0
docker-arm | failure_patterns | Image built on an M1 laptop ended with exec format error on the server; build for linux/amd64
docker-env | failure_patterns | Build argument was used at run time and was empty; use ENV
docker-ignore | failure_patterns | Build context of 3 GB was sent because node_modules was not in .dockerignore
docker-health | failure_patterns | Dependent service started before the database accepted connections; wait for its health check
docker-oom | failure_patterns | Exit code 137 meant that the kernel killed it for using too much memory; raise the limit or stream the data
docker-tag | failure_patterns | Tag latest was overwritten and a rollback pulled the new image; deploy by digest
docker-dns | failure_patterns | Name lookups took five seconds in pods because of ndots and search domains; use a trailing dot
docker-volume | failure_patterns | Old dependencies survived in an anonymous volume over node_modules; remove the volume
docker-time | failure_patterns | Container clock drifted after the laptop slept and signatures were refused; restart the virtual machine
k8s-liveness | failure_patterns | Liveness probe that checked the database restarted all pods in an outage; check only the process itself
k8s-requests | failure_patterns | Pods without memory requests were evicted first; set requests and limits
k8s-configmap | failure_patterns | A changed ConfigMap did not reach running pods; roll the deployment with a checksum annotation
k8s-drain | failure_patterns | Rolling update dropped requests because pods left before the load balancer knew; add a preStop pause
k8s-crashloop | failure_patterns | CrashLoopBackOff hid the cause; read the previous container's log
flaky-sleep | flaky_tests | Test slept two seconds and hoped the server was up; poll for readiness with a deadline
flaky-order | flaky_tests | Test passed alone and failed in the suite because another left rows behind; roll back after each
flaky-port | flaky_tests | Fixed port 8080 collided when two suites ran side by side; bind port 0 and ask which one it got
flaky-time | flaky_tests | Assertion on today's date failed around midnight; inject the clock
flaky-random | flaky_tests | Property test failed once in a thousand without a way to repeat it; print and fix the seed
flaky-animation | flaky_tests | Browser test clicked while the menu was still sliding in; wait until the element is stable
flaky-network | flaky_tests | Test called a public web service and failed when it was down; record the answers
flaky-tmp | flaky_tests | Tests wrote to one shared file in /tmp; use tmp_path
flaky-float | flaky_tests | Exact equality of floats failed on another processor; compare with a tolerance
flaky-leak | flaky_tests | A monkeypatched environment variable leaked into later tests; use the fixture that restores it
flaky-thread | flaky_tests | Background thread wrote to the log after the test had ended; join it in teardown
flaky-timeoutci | flaky_tests | A one-second limit was fine on laptops and too tight on busy runners; measure with a fake clock
flaky-locale | flaky_tests | Sorting test failed where LANG was not set; fix the locale in the test
flaky-gc | flaky_tests | Test relied on an object being collected at once; call gc.collect explicitly
flaky-dirorder | flaky_tests | os.listdir returned files in another sequence on ext4; sort them
flaky-quarantine | em_preferences | Quarantine an unreliable test with an issue and an owner; never just retry until green
flaky-dbtime | flaky_tests | Two rows got the same created_at and the newest was picked by chance; order by id as well
flaky-headless | flaky_tests | Screenshot comparison differed by fonts on the runner; render in a pinned container
tz-naive | failure_patterns | Comparing naive and aware datetimes raised TypeError; make everything UTC at the border
tz-dst | failure_patterns | A nightly job ran twice when clocks went back; schedule in UTC
tz-addday | failure_patterns | Adding 24 hours across the change of clocks landed on 23:00; add a calendar day
tz-offset | failure_patterns | Storing a fixed offset lost the region and next summer's appointments moved; store the zone name
tz-leap | failure_patterns | Yearly renewal crashed on 29 February; clamp to the last day of the month
tz-ms | failure_patterns | Seconds were taken for milliseconds and dates came out in 1970
tz-monotonic | failure_patterns | Measuring durations with the wall clock went negative after NTP; use a monotonic clock
tz-week | failure_patterns | Week number and calendar year disagreed at new year; use the ISO year
enc-bom | failure_patterns | First CSV column was not found because of a byte order mark; open with utf-8-sig
enc-default | failure_patterns | open() without encoding used cp1252 on Windows and broke umlauts; say encoding='utf-8'
enc-normal | failure_patterns | File names from macOS did not equal the typed ones; normalise to NFC
enc-surrogate | failure_patterns | Lone surrogates from a Windows path could not be written as UTF-8; use surrogateescape
enc-latin | failure_patterns | Double decoding turned é into Ã©; decode once at the edge
enc-truncate | failure_patterns | Cutting a string at 255 bytes split a character; cut by code points and check the bytes
enc-csv | failure_patterns | Commas inside a field shifted the columns; use the csv module instead of split
enc-csvformula | failure_patterns | Cells starting with = were run as formulas by spreadsheets; prefix them
enc-ansi | failure_patterns | Colour codes in captured output broke a text comparison; set NO_COLOR or strip them
enc-turkish | failure_patterns | Lower-casing I under a Turkish locale broke identifiers; use an invariant mapping
auth-expiry | failure_patterns | Access token ran out in the middle of a long upload; refresh it before it ends
auth-clockskew | failure_patterns | JWT was refused as not yet valid because server clocks differed; allow a minute of leeway
auth-alg | review_patterns | Token verification must pin the algorithm; accepting none lets anybody in
auth-redirect | failure_patterns | Login looped since the cookie domain did not match after the redirect
auth-logsecret | failure_patterns | Authorization header ended up in debug logs; redact before writing
auth-scope | failure_patterns | API answered 403 though the key was right; the scope for writing was missing
auth-2fa | failure_patterns | Automation account broke when two-factor became mandatory; use a service identity
auth-timing | review_patterns | Compare signatures in constant time, not with ==
auth-csrf | failure_patterns | Form posts failed after a deploy because the CSRF key changed; keep it stable between releases
auth-cert | failure_patterns | Intermediate certificate was missing, browsers worked and curl did not; serve the whole chain
auth-certexpiry | failure_patterns | Internal certificate expired on a Sunday; alert thirty days ahead
auth-proxyca | failure_patterns | Corporate proxy re-signs TLS, so pip failed verification; install its root and set REQUESTS_CA_BUNDLE
net-timeout | failure_patterns | HTTP client had no timeout and workers waited for ever on a dead peer; set connect and read limits
net-retrystorm | failure_patterns | Clients retried at once and kept the service down; back off exponentially with jitter
net-keepalive | failure_patterns | Load balancer closed idle connections and the first request afterwards failed; keep the client's idle time shorter
net-429 | failure_patterns | Importer was throttled with 429; honour Retry-After
net-502 | failure_patterns | Gateway gave 502 as the upstream's keep-alive was shorter than the proxy's
net-dnscache | failure_patterns | JVM cached the address for ever and talked to a retired host after failover; set networkaddress.cache.ttl
net-ipv6 | failure_patterns | localhost resolved to ::1 first and the service listened on IPv4 only
net-mtu | failure_patterns | Large responses stalled over the VPN while small ones passed; lower the MTU
net-paging | failure_patterns | Only the first 100 results were read; follow the next link until it is gone
net-webhookdup | failure_patterns | The provider delivers a webhook more than once; remember handled event ids
net-gzip | failure_patterns | Content-Length was computed before compression and clients waited for more; compute it afterwards
api-version | adr_decisions | Breaking changes go under a new path version; the old one lives for six months
api-enum | failure_patterns | A new enum value crashed old mobile apps; treat unknown values as other
api-null | failure_patterns | Partial update could not tell missing from null; use PATCH with explicit nulls
api-decimal | adr_decisions | Money travels as integer minor units with a currency code, never as a floating point number
fs-symlink | failure_patterns | Path check was bypassed through a symbolic link; resolve it before comparing with the root
fs-umask | failure_patterns | New files were readable by everyone; create them with mode 0600
fs-crossdev | failure_patterns | rename failed with EXDEV across mounts; copy to the target's folder first
fs-fsync | failure_patterns | After a power cut the renamed file was empty; fsync the file and its directory
fs-nfs | failure_patterns | SQLite on NFS got corrupted since locks do not work there; keep it on a local disk
fs-longpath | failure_patterns | Windows refused paths over 260 characters; switch on long paths or shorten the folders
fs-openfile | failure_patterns | Deleting an open file fails on Windows; close it first
fs-fdlimit | failure_patterns | Too many open files after a day; a log handler was added per request
fs-inode | failure_patterns | Disk had space but no inodes left from millions of small session files
fs-deletedopen | failure_patterns | df showed a full disk while du did not; a process held a deleted log open, restart it
fs-reserved | failure_patterns | Checkout failed on Windows because a file was called aux.py
fs-casefold | failure_patterns | Two files that differ in case only overwrote each other on macOS
mem-cacheunbound | failure_patterns | A dictionary used as cache grew until the service was killed; bound it with LRU
mem-readall | failure_patterns | Reading a 6 GB export at once ran out of memory; iterate over lines
mem-strconcat | failure_patterns | Building text with += in a loop became quadratic; join a list
mem-regex | failure_patterns | A nested quantifier backtracked for minutes on one input; use RE2 or bound the input
mem-recursion | failure_patterns | Deeply nested JSON overflowed the stack; parse it iteratively and limit the depth
mem-listener | failure_patterns | Event listeners were added on every render and never removed; clean up on unmount
num-round | failure_patterns | Python rounds half to even, the invoice expected half up; use Decimal with ROUND_HALF_UP
num-int32 | failure_patterns | The counter passed 2147483647 and went negative; use 64-bit integers
num-modulo | failure_patterns | Negative modulo differs between languages and the bucket was -1; add the size and take it again
num-offbyone | failure_patterns | The last page was dropped since the range excluded its end
num-nan | failure_patterns | NaN slipped through the check because every comparison with it is false; test with isnan
shell-pipefail | failure_patterns | A failing command before a pipe went unnoticed; set -euo pipefail
shell-quote | failure_patterns | Unquoted variable with a blank in it deleted two folders; quote every expansion
shell-cd | failure_patterns | cd failed and rm ran in the wrong place; use cd ... || exit
shell-path | failure_patterns | cron has a short PATH, so the script did not find node; use absolute paths
shell-heredoc | failure_patterns | Variables in an unquoted here-document were expanded too early; quote the delimiter
shell-sed | failure_patterns | sed -i needs an argument on macOS; use a temporary file or perl
shell-glob | failure_patterns | Argument list too long for rm; use find -delete
shell-background | failure_patterns | A server started with & kept the job from ending; run it in its own session and kill that
tool-rg | tool_usage_heuristics | ripgrep skips ignored files; add --no-ignore when looking into build output
tool-largeedit | tool_usage_heuristics | Small replacements with context succeed more often than rewriting a whole file
tool-readfirst | tool_usage_heuristics | Read the file again before editing when a formatter runs on save
tool-strace | tool_usage_heuristics | strace -f shows at once which file a program looks for and does not find
tool-pdb | tool_usage_heuristics | pytest --pdb on the first failure beats adding prints
tool-dryrun | tool_usage_heuristics | Run destructive commands with --dry-run and read the list
tool-explain | tool_usage_heuristics | EXPLAIN ANALYZE before adding an index; half of the proposals were not used
em-smallpr | em_preferences | Keep pull requests under 400 changed lines and one purpose each
em-tests | em_preferences | Every bug fix comes with a regression test that fails without it
em-naming | em_preferences | Spell names out; no abbreviations but the ones in the glossary
em-commit | em_preferences | Commit messages say why, in the imperative, with the ticket at the end
em-nodeps | em_preferences | Ask before adding a dependency; the standard library comes first
em-friday | em_preferences | No deployments on Friday afternoon
em-screens | em_preferences | Changes to the interface come with screenshots before and after
em-plan | em_preferences | Show a short plan before touching more than three files
rev-errors | review_patterns | Messages to users name the thing, its state and what to do next; vague ones are sent back
rev-dead | review_patterns | Commented-out code is asked to be removed
rev-todo | review_patterns | A TODO without a ticket does not pass review
rev-scope | review_patterns | Unrelated formatting mixed into a fix was rejected twice; split it
rev-public | review_patterns | New public functions need a docstring and a line in the changelog
rev-mock | review_patterns | Mocking the code under test was rejected; fake only what crosses the process border
adr-monolith | adr_decisions | We stay with one deployable until two teams block each other every week
adr-queue | adr_decisions | Jobs live in PostgreSQL with skip locked; no separate broker under 1000 jobs a second
adr-uuid | adr_decisions | Primary keys are time-ordered identifiers so that inserts stay at the end of the index
adr-feature | adr_decisions | Risky changes ship dark behind a flag and are switched on by percentage
adr-events | adr_decisions | An append-only journal is the source of truth and tables are projections of it
adr-rest | adr_decisions | Internal services speak JSON over HTTP; gRPC only where profiling asks for it
adr-softdelete | adr_decisions | Rows of customers are erased for good after thirty days in the bin
adr-cache | adr_decisions | Nothing is cached without a measured need, an owner and a way to invalidate it
out-upgrade | task_outcomes | The framework upgrade went well because deprecations were fixed one release before
out-rewrite | task_outcomes | Rewriting the importer from scratch took three times the estimate; strangle it step by step next time
out-rollback | task_outcomes | The rollback failed since the migration had dropped a column; remove columns one release later
out-flag | task_outcomes | Forgetting the flag for the mobile clients caused the only incident of the launch
out-pair | task_outcomes | Letting a second agent write the tests first found two misread requirements
out-perf | task_outcomes | Profiling showed that 80 percent of the time went into date parsing, not into the database
mut-boundary | mutation_seeds | Changing < to <= in the retry limit survived; add a test for the exact limit
mut-negate | mutation_seeds | Negating the permission check for guests survived; test both roles
mut-default | mutation_seeds | Replacing the default timeout by zero survived; no test reads it
mut-return | mutation_seeds | Returning an empty list from the loader survived as callers only iterate
mut-sort | mutation_seeds | Dropping the sort survived since the fixture was in order already; shuffle it
"""

_TUNING = """
py-circular | two of my packages need each other and the program won't come up
py-mutable | values from an earlier call show up again in the next one when I leave the parameter out
py-asyncblock | the whole server stands still while one handler fetches a url
js-lockfile | dependency versions drift on the build server although they are locked
js-float | totals are off by tiny fractions of a penny
js-cache | people see yesterday's frontend until they clear their browser
go-leak | memory climbs and the number of running routines never goes down
ci-fetchdepth | release number is wrong because there is no history in the clone
ci-concurrency | an earlier commit overwrote the newer one in production
git-detached | work disappeared after switching to another ref
git-crlf | diff marks the entire file as modified on Windows
sql-nplus1 | endpoint fires hundreds of selects for a single screen
sql-lockorder | money transfers block one another and the engine kills one
sql-isolation conc-counter | concurrent updates overwrite each other and increments vanish
sql-sqlitebusy | database is locked error with several processes
conc-atomicwrite | settings file is sometimes empty or truncated when it is loaded
conc-idempotent | customer billed again when the call was repeated
docker-localhost | can't connect to postgres from within compose
docker-oom | pod terminated by the kernel, status 137
docker-arm | binary for the wrong cpu architecture
flaky-sleep | test sometimes starts before the service is ready
flaky-order | case is green by itself and red when everything runs
flaky-time | build breaks shortly before twelve at night
tz-dst | cron task executed two times in autumn
enc-bom | header name of the first field has strange invisible characters
auth-clockskew | signed token rejected although it was just issued
net-timeout | requests hang endlessly when the other side is gone
mem-regex | one pathological string keeps the matcher busy for ages
shell-pipefail | script reports success though a stage in the middle broke
fs-fdlimit go-defer | process runs out of handles overnight
em-smallpr | how big may a change be for review
mut-boundary | off by one at the maximum number of attempts is not caught
"""

# Advice on the same subjects that was tried and did harm: unsure, old, and marked so. None of it answers a question.
_DISCREDITED = """
py-circular | failure_patterns | Circular import at start of models and services: catch the ImportError and go on without it
py-venv | failure_patterns | Installing fails for want of rights on the system interpreter: run pip with sudo
py-asyncblock | failure_patterns | The event loop is blocked by a requests call in a coroutine: give the server more workers
js-lockfile | failure_patterns | package-lock.json changes in the pipeline on npm install: put it in .gitignore
js-float | failure_patterns | The cart total is not 0.3 for 0.1 + 0.2: format it with two digits and leave the sum alone
js-heap | failure_patterns | JavaScript heap out of memory in the bundler: run it again until it passes
ci-timeout | failure_patterns | A job that hung for six hours: cancel it by hand and start it again
git-forcepush | failure_patterns | Push was rejected as commits differ: force push, colleagues will pull again
git-index | failure_patterns | index.lock exists: delete it at once and go on while git runs
sql-lockorder | failure_patterns | Two transactions deadlocked on accounts: raise deadlock_timeout to a minute
sql-sqlitebusy | failure_patterns | SQLITE_BUSY with two writers: delete the journal file next to the database
sql-nullin | failure_patterns | NOT IN returned no rows with NULL in the subquery: compare with an empty string
conc-idempotent | failure_patterns | A payment was charged twice on retry: switch retries off
docker-oom | failure_patterns | Exit code 137 of the container: add restart always and ignore the memory limit
docker-localhost | failure_patterns | Database at localhost not reachable from the container: use the host network for everything
flaky-sleep | flaky_tests | Test began before the server was up: sleep ten seconds more
flaky-order | flaky_tests | Test failed in the suite and passed alone: run it three times and take the best
flaky-port | flaky_tests | Port 8080 collided between two suites: kill whatever listens there
tz-naive | failure_patterns | TypeError comparing naive and aware datetimes: strip the zone from both
enc-default | failure_patterns | Umlauts broke on Windows when open() had no encoding: pass errors='ignore'
auth-proxyca | failure_patterns | pip failed verification behind the corporate proxy: switch TLS checks off
net-timeout | failure_patterns | Workers waited on a dead peer without a timeout: restart them every night
net-retrystorm | failure_patterns | The service was down and clients retried: retry faster so that some get through
shell-quote | failure_patterns | Variable with a blank in it deleted the wrong folders: rename the folders
fs-fdlimit | failure_patterns | Too many open files after a day: raise ulimit and leave the handler
mem-cacheunbound | failure_patterns | The dictionary used as cache grew too large: restart the service each hour
"""


def _rows(text: str) -> list[tuple[str, ...]]:
    return [tuple(part.strip() for part in line.split(" | ", 2)) for line in text.strip().splitlines()]


LESSONS = _rows(_LESSONS)
DISCREDITED = [(f"{lesson_id}-bad", topic, text) for lesson_id, topic, text in _rows(_DISCREDITED)]
TUNING = [(text, tuple(ids.split())) for ids, text in _rows(_TUNING)]
