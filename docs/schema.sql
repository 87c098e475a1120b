-- The schema of a Decklog log. Written by `make docs`; a test keeps it true.

-- First as SQLite holds it after all migrations, then the migrations as PostgreSQL gets them.

----------------------------------------------------------------------------------------------------
-- SQLite
----------------------------------------------------------------------------------------------------

CREATE TABLE schema_steps (
  version    integer primary key,
  name       text not null,
  checksum   text not null,
  applied_at text not null,
  digest     text
) strict;

CREATE TABLE streams (
  no         integer primary key,
  name       text not null unique,
  created_at text not null,
  in_order   integer not null check (in_order in (0, 1))
) strict;

CREATE TABLE entries (
  pos            integer primary key,
  stream         text not null,
  seq            integer not null check (seq >= 1 and seq = pos % 4294967296),
  at             text not null,
  hash_bytes     blob not null,
  kind           text not null check (kind = 'interaction' or kind = 'reasoning' or kind = 'event' or kind = 'tool' or kind = 'change'),
  subtype        text,
  agent          text,
  agent_id       text,
  group_id       text,
  task_id        text,
  iteration      integer,
  phase          text check (phase = 'understanding' or phase = 'approach' or phase = 'decisions' or phase = 'risks' or phase = 'blockers' or phase = 'pivot' or phase = 'completion'),
  confidence     text check (confidence = 'high' or confidence = 'medium' or confidence = 'low'),
  redacted       integer not null default 0 check (redacted in (0, 1)),
  key            text,
  record_table   text,
  record_id      text,
  refs           text,
  body_digest    text,
  payload_digest text,
  body           text,
  payload        text,
  hash           text generated always as (lower(hex(hash_bytes))) virtual,
  check ((kind = 'change') = (record_table is not null and record_id is not null))
) strict;

CREATE UNIQUE INDEX entries_by_key on entries (stream, coalesce(subtype, ''), coalesce(group_id, ''), key) where key is not null;

CREATE INDEX entries_by_record on entries (record_table, record_id, seq) where record_table is not null;

CREATE INDEX entries_by_subtype on entries (subtype, pos) where subtype is not null and kind <> 'change';

CREATE INDEX entries_by_group on entries (group_id, pos) where group_id is not null;

CREATE INDEX entries_by_task on entries (task_id, pos) where task_id is not null and record_table is distinct from 'tasks';

CREATE TABLE blobs (
  digest text not null primary key,
  size   integer not null check (size >= 0),
  bytes  blob not null
) strict;

CREATE TRIGGER entries_never_go before delete on entries
begin
  select raise(abort, 'journal entries are never deleted');
end;

CREATE TRIGGER entries_never_change before update of
  pos, stream, seq, at, hash_bytes, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key,
  record_table, record_id, refs on entries
begin
  select raise(abort, 'journal entries are never changed');
end;

CREATE TRIGGER entries_keep_digests before update of body, payload, body_digest, payload_digest on entries
when not (
  old.kind <> 'change'
  and (new.body is old.body or (new.body is null and new.body_digest is not null))
  and (new.payload is old.payload or (new.payload is null and new.payload_digest is not null))
  and (old.body_digest is null or new.body_digest is old.body_digest)
  and (old.payload_digest is null or new.payload_digest is old.payload_digest)
)
begin
  select raise(abort, 'journal entries are never changed');
end;

CREATE VIRTUAL TABLE entry_text using fts5(words, tags, content = '', contentless_delete = 1, tokenize = 'ascii');

CREATE VIRTUAL TABLE entry_terms using fts5vocab(entry_text, 'instance');

CREATE TABLE entry_text_marks (
  stream_no integer primary key,
  pos       integer not null
) strict;

CREATE TABLE runs (
  id                 text not null primary key,
  goal               text not null,
  status             text not null check (status in ('planning', 'active', 'paused', 'completed', 'failed', 'cancelled')),
  mode               text check (mode in ('simple', 'parallel')),
  repo               text,
  branch             text,
  worktree           text,
  summary            text,
  current_task_id    text,
  cycles             integer not null check (cycles >= 0),
  replans            integer not null check (replans >= 0),
  metadata           text not null,
  parent_run_id      text,
  parent_seq         integer,
  key                text unique,
  started_at         text not null,
  updated_at         text not null,
  ended_at           text,
  check ((ended_at is not null) = (status in ('completed', 'failed', 'cancelled')))
) strict;

CREATE INDEX runs_by_start on runs (started_at, id);

CREATE INDEX runs_by_status on runs (status, started_at, id);

CREATE INDEX runs_by_end on runs (ended_at, id) where ended_at is not null;

CREATE INDEX runs_by_repo on runs (repo, started_at, id) where repo is not null;

CREATE INDEX runs_by_parent on runs (parent_run_id, started_at, id) where parent_run_id is not null;

CREATE TABLE agents (
  run_id             text not null references runs (id),
  role               text not null,
  session            text,
  turns              integer not null check (turns >= 0),
  rotations          integer not null check (rotations >= 0),
  last_prompt_path   text,
  last_response_path text,
  updated_at         text not null,
  primary key (run_id, role)
) strict;

CREATE TABLE groups (
  run_id                text not null references runs (id),
  group_id              text not null check (length(group_id) between 1 and 64),
  number                integer not null check (number >= 1),
  name                  text not null,
  status                text not null
    check (status in ('pending', 'in_progress', 'completed', 'failed', 'approved_pending_merge', 'merging')),
  assigned_to           text,
  revision_count        integer not null check (revision_count >= 0),
  last_review_status    text check (last_review_status in ('APPROVED', 'CHANGES_REQUESTED')),
  feature_branch        text,
  merge_status          text check (merge_status in ('pending', 'in_progress', 'merged', 'conflict', 'test_failure')),
  complexity            integer check (complexity between 1 and 10),
  initial_tier          text not null check (initial_tier in ('Developer', 'Senior Software Engineer')),
  context_references    text,
  specializations       text,
  item_count            integer not null check (item_count >= 1),
  security_sensitive    integer not null check (security_sensitive in (0, 1)),
  qa_attempts           integer not null check (qa_attempts >= 0),
  tl_review_attempts    integer not null check (tl_review_attempts >= 0),
  component_path        text,
  review_iteration      integer not null check (review_iteration >= 1),
  no_progress_count     integer not null check (no_progress_count >= 0),
  blocking_issues_count integer not null check (blocking_issues_count >= 0),
  speckit_task_ids      text,
  created_at            text not null,
  updated_at            text not null,
  primary key (run_id, group_id),
  unique (run_id, number)
) strict;

CREATE INDEX groups_by_status on groups (status, run_id, number);

CREATE TABLE plans (
  run_id           text not null primary key references runs (id),
  original_prompt  text not null,
  plan_text        text not null,
  current_phase    integer check (current_phase >= 0),
  total_phases     integer not null check (total_phases >= 0),
  metadata         text,
  created_at       text not null,
  updated_at       text not null
) strict;

CREATE TABLE phases (
  run_id           text not null references plans (run_id),
  number           integer not null check (number >= 0),
  name             text not null,
  status           text not null check (status in ('pending', 'in_progress', 'completed', 'blocked')),
  progress_percent integer not null check (progress_percent between 0 and 100),
  started_at       text,
  completed_at     text,
  extra            text not null,
  updated_at       text not null,
  primary key (run_id, number),
  check (completed_at is null or status = 'completed')
) strict;

CREATE TABLE criteria (
  run_id           text not null references runs (id),
  number           integer not null check (number >= 1),
  criterion        text not null,
  status           text not null check (status in ('pending', 'met', 'blocked', 'failed')),
  actual           text,
  evidence         text,
  required         integer not null check (required in (0, 1)),
  evidence_commit  text,
  evidence_files   text,
  is_stale         integer not null check (is_stale in (0, 1)),
  stale_reason     text,
  created_at       text not null,
  updated_at       text not null,
  primary key (run_id, number),
  unique (run_id, criterion),
  check ((is_stale = 1) = (stale_reason is not null)),
  check (status = 'met' or (is_stale = 0 and evidence_commit is null and evidence_files is null))
) strict;

CREATE INDEX criteria_stale on criteria (run_id, number) where is_stale = 1;

CREATE TABLE tasks (
  id                text not null primary key,
  run_id            text not null references runs (id),
  group_id          text,
  title             text not null,
  objective         text not null,
  state             text not null check (
    state = 'pending' or state = 'running' or state = 'waiting' or state = 'blocked' or state = 'paused' or state = 'done'
    or state = 'abandoned'
  ),
  priority          integer not null check (priority between 0 and 100),
  role              text,
  tags              text not null,
  acceptance        text not null,
  verification      text not null,
  allowed_paths     text not null,
  inputs            text not null,
  not_before        text,
  open_dependencies integer not null check (open_dependencies >= 0),
  max_attempts      integer not null check (max_attempts >= 1),
  attempts          integer not null check (attempts >= 0),
  failures          integer not null check (failures >= 0),
  fence             integer not null check (fence >= 0),
  worker            text,
  leased_at         text,
  leased_until      text,
  stage             text,
  state_name        text,
  trace_file        text,
  loop_version      integer,
  outcome           text check (
    outcome = 'done' or outcome = 'failed' or outcome = 'expired' or outcome = 'released' or outcome = 'blocked'
    or outcome = 'paused' or outcome = 'parked' or outcome = 'abandoned'
  ),
  summary           text,
  result            text,
  reason            text,
  blocker           text,
  blocker_repeats   integer not null check (blocker_repeats >= 0),
  snapshot          text,
  reservation_id    text,
  key               text,
  created_at        text not null,
  updated_at        text not null,
  assigned_to       text,
  check ((state = 'running') = (worker is not null)),
  check ((state = 'running') = (leased_until is not null))
) strict;

CREATE INDEX tasks_running on tasks (run_id, leased_until) where state = 'running';

CREATE INDEX tasks_by_creation on tasks (run_id, created_at, id);

CREATE UNIQUE INDEX tasks_by_key on tasks (run_id, key) where key is not null;

CREATE INDEX tasks_assigned on tasks (run_id, assigned_to) where assigned_to is not null;

CREATE INDEX tasks_blocked on tasks (updated_at, id) where state = 'blocked';

CREATE INDEX tasks_held on tasks (run_id, priority desc, created_at, id)
  where state = 'blocked' or state = 'waiting' or state = 'paused';

CREATE INDEX tasks_dependent on tasks (run_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies > 0;

CREATE INDEX tasks_waiting on tasks (updated_at, id) where state = 'waiting';

CREATE INDEX tasks_paused on tasks (updated_at, id) where state = 'paused';

CREATE INDEX tasks_ready on tasks (run_id, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0;

CREATE INDEX tasks_ready_by_group on tasks (run_id, group_id, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and group_id is not null;

CREATE INDEX tasks_ready_by_role on tasks (run_id, role, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and role is not null;

CREATE INDEX tasks_ready_assigned on tasks (run_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and assigned_to is not null;

CREATE TABLE dependencies (
  run_id     text not null references runs (id),
  task_id    text not null references tasks (id),
  depends_on text not null references tasks (id),
  kind       text not null default 'blocks'
    check (kind = 'blocks' or kind = 'parent' or kind = 'related' or kind = 'discovered-from'),
  primary key (task_id, depends_on),
  check (task_id <> depends_on)
) strict;

CREATE INDEX dependencies_by_target on dependencies (depends_on, task_id);

CREATE UNIQUE INDEX dependencies_one_parent on dependencies (task_id) where kind = 'parent';

CREATE TABLE task_comments (
  id         text not null primary key,
  run_id     text not null references runs (id),
  task_id    text not null references tasks (id),
  author     text not null,
  body       text not null,
  created_at text not null
) strict;

CREATE INDEX task_comments_by_task on task_comments (task_id, created_at, id);

CREATE TABLE templates (
  name        text not null,
  version     integer not null check (version >= 1),
  description text not null,
  tasks       text not null,
  created_at  text not null,
  primary key (name, version)
) strict;

CREATE TABLE schedules (
  id              text not null primary key,
  run_id          text not null references runs (id),
  name            text not null,
  rule            text not null,
  zone            text not null,
  catch_up        text not null check (catch_up = 'none' or catch_up = 'one' or catch_up = 'all'),
  catch_up_limit  integer not null check (catch_up_limit between 1 and 100),
  late_seconds    integer not null check (late_seconds >= 0),
  task            text,
  template        text,
  template_values text not null,
  next_at         text,
  last_at         text,
  occurrences     integer not null check (occurrences >= 0),
  reason          text,
  created_at      text not null,
  updated_at      text not null,
  unique (run_id, name),
  check ((task is null) <> (template is null))
) strict;

CREATE INDEX schedules_due on schedules (run_id, next_at) where next_at is not null;

CREATE TABLE ready_tags (
  tag         text not null,
  run_id      text not null,
  assigned_to text not null,
  rank        integer not null,
  created_at  text not null,
  task_id     text not null,
  primary key (tag, run_id, assigned_to, rank, created_at, task_id)
) strict, without rowid;

CREATE TRIGGER ready_tags_added after insert on tasks
when new.tags <> '[]' and new.state = 'pending' and new.open_dependencies = 0
begin
  insert or ignore into ready_tags (tag, run_id, assigned_to, rank, created_at, task_id)
  select j.value, new.run_id, coalesce(new.assigned_to, ''), -new.priority, new.created_at, new.id
    from json_each(iif(json_valid(new.tags), new.tags, '[]')) j
   where j.type = 'text';
end;

CREATE TRIGGER ready_tags_changed after update of id, run_id, state, open_dependencies, priority, tags, created_at, assigned_to on tasks
when old.tags <> '[]' or new.tags <> '[]'
begin
  delete from ready_tags
   where old.state = 'pending' and old.open_dependencies = 0
     and tag in (select j.value from json_each(iif(json_valid(old.tags), old.tags, '[]')) j where j.type = 'text')
     and run_id = old.run_id and assigned_to = coalesce(old.assigned_to, '') and rank = -old.priority
     and created_at = old.created_at and task_id = old.id;
  insert or ignore into ready_tags (tag, run_id, assigned_to, rank, created_at, task_id)
  select j.value, new.run_id, coalesce(new.assigned_to, ''), -new.priority, new.created_at, new.id
    from json_each(iif(json_valid(new.tags), new.tags, '[]')) j
   where new.state = 'pending' and new.open_dependencies = 0 and j.type = 'text';
end;

CREATE TRIGGER ready_tags_removed after delete on tasks
when old.tags <> '[]' and old.state = 'pending' and old.open_dependencies = 0
begin
  delete from ready_tags
   where tag in (select j.value from json_each(iif(json_valid(old.tags), old.tags, '[]')) j where j.type = 'text')
     and run_id = old.run_id and assigned_to = coalesce(old.assigned_to, '') and rank = -old.priority
     and created_at = old.created_at and task_id = old.id;
end;

CREATE TABLE states (
  run_id     text not null references runs (id),
  group_id   text not null,
  name       text not null,
  version    integer not null check (version >= 1),
  digest     text not null,
  iteration  integer check (iteration >= 1),
  updated_at text not null,
  primary key (run_id, group_id, name),
  check (name <> 'investigation' or lower(group_id) <> 'global')
) strict;

CREATE TABLE state_versions (
  run_id    text not null,
  group_id  text not null,
  name      text not null,
  version   integer not null check (version >= 1),
  digest    text not null,
  redacted  integer not null check (redacted in (0, 1)),
  iteration integer check (iteration >= 1),
  agent     text,
  saved_at  text not null,
  primary key (run_id, group_id, name, version),
  foreign key (run_id, group_id, name) references states (run_id, group_id, name)
) strict;

CREATE TABLE checkpoints (
  id         text not null primary key,
  run_id     text not null references runs (id),
  number     integer not null check (number >= 1),
  seq        integer not null check (seq >= 1),
  name       text,
  status     text,
  payload    text,
  digest     text not null,
  redacted   integer not null check (redacted in (0, 1)),
  key        text,
  created_at text not null,
  unique (run_id, number),
  unique (run_id, key)
) strict;

CREATE TABLE snapshots (
  run_id    text not null references runs (id),
  task_id   text not null check (task_id <> ''),
  paused_at text not null,
  reason    text not null,
  pauses    integer not null check (pauses >= 1),
  digest    text not null,
  redacted  integer not null check (redacted in (0, 1)),
  saved_at  text not null,
  primary key (run_id, task_id)
) strict;

CREATE INDEX snapshots_by_task on snapshots (task_id);

CREATE TABLE artifacts (
  id         text not null primary key,
  run_id     text not null references runs (id),
  number     integer not null check (number >= 1),
  task_id    text,
  role       text,
  kind       text not null,
  path       text not null,
  media_type text not null,
  digest     text check (length(digest) = 64),
  size       integer check (size >= 0),
  redacted   integer not null check (redacted in (0, 1)),
  metadata   text not null,
  created_at text not null,
  unique (run_id, number),
  unique (run_id, path, digest)
) strict;

CREATE INDEX artifacts_by_time on artifacts (created_at, run_id, number);

CREATE INDEX artifacts_by_digest on artifacts (digest) where digest is not null;

CREATE TABLE outputs (
  id        text not null primary key,
  run_id    text not null references runs (id),
  number    integer not null check (number >= 1),
  skill     text not null check (skill <> ''),
  agent     text check (agent <> ''),
  group_id  text check (group_id <> ''),
  iteration integer not null check (iteration >= 1),
  document  text,
  digest    text not null,
  redacted  integer not null check (redacted in (0, 1)),
  key       text,
  saved_at  text not null,
  unique (run_id, number),
  unique (run_id, key)
) strict;

CREATE UNIQUE INDEX outputs_by_iteration on outputs (run_id, skill, coalesce(agent, ''), coalesce(group_id, ''), iteration);

CREATE INDEX outputs_by_skill on outputs (run_id, skill, number);

CREATE INDEX outputs_by_time on outputs (run_id, saved_at);

CREATE TABLE graph_checkpoints (
  run_id        text not null references runs (id),
  namespace     text not null,
  checkpoint_id text not null,
  thread_id     text not null,
  parent_id     text,
  encoding      text not null,
  digest        text not null,
  metadata      text not null,
  graph_run_id  text,
  redacted      integer not null check (redacted = 0 or redacted = 1),
  saved_at      text not null,
  primary key (run_id, namespace, checkpoint_id)
) strict;

CREATE INDEX graph_checkpoints_by_id on graph_checkpoints (checkpoint_id);

CREATE INDEX graph_checkpoints_by_graph_run on graph_checkpoints (graph_run_id) where graph_run_id is not null;

CREATE TABLE graph_writes (
  run_id        text not null references runs (id),
  namespace     text not null,
  checkpoint_id text not null,
  task_id       text not null,
  number        integer not null,
  task_path     text not null,
  channel       text not null,
  encoding      text not null,
  digest        text not null,
  redacted      integer not null check (redacted = 0 or redacted = 1),
  saved_at      text not null,
  primary key (run_id, namespace, checkpoint_id, task_id, number)
) strict;

CREATE TABLE graph_items (
  namespace   text not null,
  key         text not null,
  value       text not null,
  created_at  text not null,
  updated_at  text not null,
  indexed     text,
  ttl_seconds real,
  expires_at  text,
  primary key (namespace, key)
) strict;

CREATE INDEX graph_items_by_expiry on graph_items (expires_at) where expires_at is not null;

CREATE TABLE prices (
  model              text not null,
  valid_from         text not null,
  over_tokens        integer not null check (over_tokens >= 0),
  input_price        integer not null check (input_price >= 0),
  cache_read_price   integer check (cache_read_price >= 0),
  cache_create_price integer check (cache_create_price >= 0),
  output_price       integer not null check (output_price >= 0),
  source             text,
  sourced_on         text,
  primary key (model, valid_from, over_tokens)
) strict;

CREATE TABLE budgets (
  id           text not null primary key,
  scope        text not null check (scope in ('all', 'run', 'group', 'task', 'agent')),
  scope_id     text,
  period       text not null check (period in ('day', 'week', 'month', 'forever')),
  unit         text not null check (unit in ('microdollars', 'tokens')),
  ceiling      integer not null check (ceiling >= 0),
  action       text not null check (action in ('warn', 'stop')),
  warn_percent integer not null check (warn_percent >= 1 and warn_percent <= 100),
  set_at       text not null,
  proof        text,
  check ((scope = 'all') = (scope_id is null))
) strict;

CREATE UNIQUE INDEX budgets_by_scope on budgets ((scope || ' ' || coalesce(scope_id, '')), period, unit);

CREATE TABLE reservations (
  id                text not null primary key,
  state             text not null check (state = 'open' or state = 'settled' or state = 'released'),
  microdollars      integer not null check (microdollars >= 0),
  tokens            integer not null check (tokens >= 0),
  used_microdollars integer not null check (used_microdollars >= 0),
  used_tokens       integer not null check (used_tokens >= 0),
  reserved_at       text not null,
  expires_at        text not null,
  ended_at          text,
  run_id            text references runs (id),
  group_id          text,
  task_id           text,
  agent             text,
  holder            text,
  key               text,
  check ((ended_at is null) = (state = 'open'))
) strict;

CREATE INDEX reservations_open on reservations (expires_at) where state = 'open';

CREATE UNIQUE INDEX reservations_by_key on reservations (coalesce(run_id, ''), key) where key is not null;

CREATE TABLE charges (
  id                  text not null primary key,
  occurred_at         text not null,
  model               text not null,
  input_tokens        integer not null check (input_tokens >= 0),
  cache_read_tokens   integer not null check (cache_read_tokens >= 0),
  cache_create_tokens integer not null check (cache_create_tokens >= 0),
  output_tokens       integer not null check (output_tokens >= 0),
  cost_microdollars   integer check (cost_microdollars >= 0),
  call_site           text,
  agent               text,
  agent_id            text,
  run_id              text references runs (id),
  group_id            text,
  task_id             text,
  reservation_id      text references reservations (id),
  counted_at          text,
  overdrew            integer not null check (overdrew = 0 or overdrew = 1),
  is_late             integer not null check (is_late = 0 or is_late = 1),
  key                 text,
  -- The provider's id of a response, so that two recorders do not charge it twice. Not unique, so that logs can be merged.
  answer_id           text
) strict;

CREATE INDEX charges_by_time on charges (occurred_at, id);

CREATE INDEX charges_by_run on charges (run_id) where run_id is not null;

CREATE INDEX charges_by_task on charges (task_id) where task_id is not null;

CREATE UNIQUE INDEX charges_by_key on charges (coalesce(run_id, ''), key) where key is not null;

CREATE INDEX charges_by_answer on charges (answer_id) where answer_id is not null;

CREATE TABLE budget_days (
  budget_id      text not null references budgets (id) on delete cascade,
  day            text not null,
  microdollars   integer not null,
  tokens         integer not null,
  calls          integer not null,
  unpriced_calls integer not null,
  as_of          text not null,
  primary key (budget_id, day)
) strict;

CREATE TABLE budget_gates (
  no integer not null primary key
) strict;

CREATE TABLE spend_days (
  run_id              text not null,
  day                 text not null,
  model               text not null,
  agent               text not null,
  calls               integer not null,
  input_tokens        integer not null,
  cache_read_tokens   integer not null,
  cache_create_tokens integer not null,
  output_tokens       integer not null,
  cost_microdollars   integer not null,
  unpriced_calls      integer not null,
  primary key (run_id, day, model, agent)
) strict;

CREATE INDEX spend_days_by_day on spend_days (day);

CREATE TRIGGER spend_days_charged after insert on charges
begin
  insert into spend_days
    (run_id, day, model, agent, calls, input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
  values
    (coalesce(new.run_id, ''), substr(new.occurred_at, 1, 10), new.model, coalesce(new.agent, ''),
     1, new.input_tokens, new.cache_read_tokens, new.cache_create_tokens, new.output_tokens, coalesce(new.cost_microdollars, 0), (new.cost_microdollars is null))
  on conflict (run_id, day, model, agent) do update set
  calls = spend_days.calls + excluded.calls,
  input_tokens = spend_days.input_tokens + excluded.input_tokens,
  cache_read_tokens = spend_days.cache_read_tokens + excluded.cache_read_tokens,
  cache_create_tokens = spend_days.cache_create_tokens + excluded.cache_create_tokens,
  output_tokens = spend_days.output_tokens + excluded.output_tokens,
  cost_microdollars = spend_days.cost_microdollars + excluded.cost_microdollars,
  unpriced_calls = spend_days.unpriced_calls + excluded.unpriced_calls;
end;

CREATE TRIGGER spend_days_corrected after update on charges
begin
  update spend_days set
    calls = calls - 1,
    input_tokens = input_tokens - old.input_tokens,
    cache_read_tokens = cache_read_tokens - old.cache_read_tokens,
    cache_create_tokens = cache_create_tokens - old.cache_create_tokens,
    output_tokens = output_tokens - old.output_tokens,
    cost_microdollars = cost_microdollars - coalesce(old.cost_microdollars, 0),
    unpriced_calls = unpriced_calls - (old.cost_microdollars is null)
   where run_id = coalesce(old.run_id, '') and day = substr(old.occurred_at, 1, 10) and model = old.model
     and agent = coalesce(old.agent, '');
  delete from spend_days
   where run_id = coalesce(old.run_id, '') and day = substr(old.occurred_at, 1, 10) and calls = 0;
  insert into spend_days
    (run_id, day, model, agent, calls, input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
  values
    (coalesce(new.run_id, ''), substr(new.occurred_at, 1, 10), new.model, coalesce(new.agent, ''),
     1, new.input_tokens, new.cache_read_tokens, new.cache_create_tokens, new.output_tokens, coalesce(new.cost_microdollars, 0), (new.cost_microdollars is null))
  on conflict (run_id, day, model, agent) do update set
  calls = spend_days.calls + excluded.calls,
  input_tokens = spend_days.input_tokens + excluded.input_tokens,
  cache_read_tokens = spend_days.cache_read_tokens + excluded.cache_read_tokens,
  cache_create_tokens = spend_days.cache_create_tokens + excluded.cache_create_tokens,
  output_tokens = spend_days.output_tokens + excluded.output_tokens,
  cost_microdollars = spend_days.cost_microdollars + excluded.cost_microdollars,
  unpriced_calls = spend_days.unpriced_calls + excluded.unpriced_calls;
end;

CREATE TRIGGER spend_days_removed after delete on charges
begin
  update spend_days set
    calls = calls - 1,
    input_tokens = input_tokens - old.input_tokens,
    cache_read_tokens = cache_read_tokens - old.cache_read_tokens,
    cache_create_tokens = cache_create_tokens - old.cache_create_tokens,
    output_tokens = output_tokens - old.output_tokens,
    cost_microdollars = cost_microdollars - coalesce(old.cost_microdollars, 0),
    unpriced_calls = unpriced_calls - (old.cost_microdollars is null)
   where run_id = coalesce(old.run_id, '') and day = substr(old.occurred_at, 1, 10) and model = old.model
     and agent = coalesce(old.agent, '');
  delete from spend_days
   where run_id = coalesce(old.run_id, '') and day = substr(old.occurred_at, 1, 10) and calls = 0;
end;

CREATE TABLE topics (
  name        text not null primary key,
  description text not null,
  created_at  text not null
) strict;

CREATE TABLE lessons (
  id               text not null primary key,
  topic            text not null,
  project          text,
  body             text not null,
  fingerprint      text not null,
  payload          text not null,
  confidence       integer not null check (confidence between 0 and 100),
  source_kind      text not null,
  source_id        text,
  run_id           text references runs (id),
  task_id          text,
  sightings        integer not null check (sightings >= 1),
  recall_count     integer not null check (recall_count >= 0),
  useful_count     integer not null check (useful_count >= 0),
  harmful_count    integer not null check (harmful_count >= 0),
  superseded_by    text references lessons (id) check (superseded_by <> id),
  created_at       text not null,
  last_seen_at     text not null,
  last_recalled_at text,
  -- Versions, paths and a commit that the lesson applies to; empty means everything.
  scope            text not null default '{}',
  -- When its scope changed, and how.
  outdated_at      text,
  outdated_by      text,
  -- When it was retired without a successor.
  retired_at       text
) strict;

CREATE INDEX lessons_by_fingerprint on lessons (fingerprint);

CREATE INDEX lessons_by_topic on lessons (topic, created_at, id);

CREATE INDEX lessons_by_creation on lessons (created_at, id);

CREATE INDEX lessons_by_recall on lessons (last_recalled_at);

CREATE INDEX lessons_by_successor on lessons (superseded_by) where superseded_by is not null;

CREATE TABLE sightings (
  id          text not null primary key,
  lesson_id   text not null references lessons (id),
  body        text,
  source_kind text not null,
  source_id   text,
  run_id      text references runs (id),
  task_id     text,
  refs        text not null,
  key         text unique,
  seen_at     text not null
) strict;

CREATE INDEX sightings_by_lesson on sightings (lesson_id, seen_at, id);

CREATE TABLE patterns (
  pattern_hash text not null,
  project      text not null,
  signature    text not null,
  solution     text not null,
  confidence   real not null check (confidence >= 0 and confidence <= 1),
  occurrences  integer not null check (occurrences >= 1),
  lang         text,
  ttl_days     integer not null check (ttl_days > 0),
  created_at   text not null,
  last_seen_at text not null,
  primary key (pattern_hash, project)
) strict;

CREATE INDEX patterns_by_project on patterns (project, lang);

CREATE INDEX patterns_by_age on patterns (ttl_days, last_seen_at);

CREATE TABLE strategies (
  id           text not null primary key,
  project      text not null,
  topic        text not null check (topic in ('implementation', 'architecture', 'methodology', 'general')),
  insight      text not null,
  helpfulness  integer not null check (helpfulness >= 0),
  lang         text,
  framework    text,
  refs         text not null,
  created_at   text not null,
  last_seen_at text not null
) strict;

CREATE INDEX strategies_by_project on strategies (project, helpfulness, last_seen_at);

CREATE TABLE learnings (
  id          text not null primary key,
  task_id     text not null,
  observation text not null,
  candidate   text not null,
  state       text not null check (state in ('open', 'promoted', 'dismissed')),
  noted_at    text not null,
  run_id      text references runs (id),
  key         text unique,
  decided_at  text,
  decided_by  text,
  reason      text,
  check ((decided_at is null) = (state = 'open'))
) strict;

CREATE INDEX learnings_by_state on learnings (state, noted_at, id);

CREATE INDEX learnings_by_time on learnings (noted_at, id);

CREATE TABLE lesson_desk (
  id integer not null primary key check (id = 1)
) strict;

CREATE TABLE contradictions (
  id         text not null primary key,
  lesson_id  text not null references lessons (id),
  other_id   text not null references lessons (id),
  about      text not null,
  state      text not null check (state in ('open', 'settled', 'both_hold')),
  found_at   text not null,
  settled_at text,
  settled_by text,
  reason     text,
  check (lesson_id <> other_id),
  check ((settled_at is null) = (state = 'open')),
  unique (lesson_id, other_id)
) strict;

CREATE INDEX contradictions_by_state on contradictions (state, found_at, id);

CREATE INDEX contradictions_by_other on contradictions (other_id);

CREATE TABLE proposals (
  id          text not null primary key,
  kind        text not null check (kind in ('check', 'attempt', 'blocker', 'fix', 'review', 'correction')),
  subject     text not null unique,
  topic       text not null,
  body        text not null,
  payload     text not null,
  state       text not null check (state in ('gathering', 'open', 'known', 'accepted', 'dismissed')),
  confidence  integer not null check (confidence between 0 and 100),
  because     text not null,
  evidence    text not null,
  run_id      text references runs (id),
  task_id     text,
  lesson_id   text references lessons (id),
  proposed_at text not null,
  seen_at     text not null,
  decided_at  text,
  decided_by  text,
  reason      text,
  check ((lesson_id is not null) = (state in ('known', 'accepted'))),
  check ((decided_at is not null) = (state in ('accepted', 'dismissed')))
) strict;

CREATE INDEX proposals_by_state on proposals (state, confidence, proposed_at, id);

CREATE TABLE proposal_marks (
  stream text not null primary key,
  seq    integer not null check (seq >= 1),
  hash   text not null
) strict;

CREATE TABLE lesson_sums (
  id      integer not null primary key check (id = 1),
  lessons integer not null,
  terms   integer not null
) strict;

CREATE TABLE lesson_marks (
  name text not null primary key,
  seq  integer not null
) strict;

CREATE TABLE lesson_places (
  no        integer primary key,
  lesson_id text not null unique references lessons (id),
  length    integer not null
) strict;

CREATE VIRTUAL TABLE lesson_text using fts5(
  terms, tags,
  content = '', contentless_delete = 1, tokenize = 'ascii'
);

CREATE VIRTUAL TABLE lesson_terms using fts5vocab(lesson_text, 'row');

CREATE TABLE lesson_vectors (
  lesson_id  text not null references lessons (id),
  embedder   text not null,
  dimensions integer not null check (dimensions > 0),
  vector     blob not null check (length(vector) = 4 * dimensions),
  primary key (embedder, lesson_id)
) strict, without rowid;

CREATE TABLE approvals (
  id              text not null primary key,
  run_id          text not null references runs (id),
  number          integer not null check (number >= 1),
  state           text not null check (state in ('open', 'granted', 'denied', 'expired', 'withdrawn')),
  question        text,
  subject         text,
  subject_digest  text check (length(subject_digest) = 64),
  asked_by        text check (asked_by <> ''),
  asked_of        text,
  asked_at        text not null,
  source          text,
  task_id         text,
  expires_at      text,
  default_verdict text check (default_verdict in ('granted', 'denied')),
  verdict         text,
  decided_by      text check (decided_by <> ''),
  decided_at      text,
  rationale       text,
  payload         text not null,
  key             text,
  -- The signature of the decision. No foreign key: it refers to the decision and is written after it.
  proof           text,
  -- The number of uses granted, the time until which it is valid, and the number of uses so far.
  max_uses        integer check (max_uses >= 1),
  valid_until     text,
  uses            integer check (uses >= 0),
  -- The digest of the stored subject, which differs if parts were redacted.
  about_digest    text check (length(about_digest) = 64),
  redacted        integer not null default 0 check (redacted in (0, 1)),
  unique (run_id, number),
  unique (run_id, key),
  -- The requester never decides.
  check (lower(trim(asked_by)) <> lower(trim(decided_by))),
  -- A verdict without a request has no subject, so it can't approve anything.
  check ((asked_by is null) = (subject_digest is null) and (asked_by is null) = (question is null)),
  check (asked_by is not null or state in ('granted', 'denied')),
  check ((state = 'open') = (decided_at is null)),
  check (decided_by is null or state in ('granted', 'denied')),
  -- A question is answered by somebody, or by its default.
  check (decided_by is not null or asked_by is null or state not in ('granted', 'denied') or coalesce(default_verdict, '') = state),
  check (default_verdict is null or expires_at is not null)
) strict;

CREATE INDEX approvals_by_time on approvals (asked_at, run_id, number);

CREATE INDEX approvals_by_source on approvals (run_id, source, number) where source is not null;

CREATE INDEX approvals_by_digest on approvals (run_id, subject_digest) where subject_digest is not null;

CREATE INDEX approvals_open on approvals (run_id, expires_at) where state = 'open';

CREATE TABLE feedback (
  id                   text not null primary key,
  message_id           text unique,
  from_handle          text not null check (from_handle <> ''),
  channel              text not null check (channel <> ''),
  severity             text not null check (severity in ('low', 'med', 'high', 'critical')),
  body                 text not null check (body <> ''),
  state                text not null check (state in ('pending', 'triaged', 'in-fix', 'fix-pr-open', 'verified', 'rejected', 'closed')),
  fix_class            text check (fix_class in ('prompt', 'doc', 'test', 'tool', 'policy', 'architectural', 'state-machine', 'out-of-scope')),
  context_url          text,
  root_cause           text,
  success_criterion    text,
  fix_pr_url           text,
  regression_test_path text,
  notes                text not null,
  key                  text unique,
  received_at          text not null,
  updated_at           text not null,
  closed_at            text,
  check (state = 'pending' or fix_class is not null),
  check (state <> 'fix-pr-open' or (fix_pr_url is not null and fix_pr_url <> '')),
  check (state <> 'verified' or (regression_test_path is not null and regression_test_path <> '')),
  check ((closed_at is not null) = (state = 'closed'))
) strict;

CREATE INDEX feedback_by_time on feedback (received_at, id);

CREATE INDEX feedback_by_state on feedback (state, received_at, id);

CREATE INDEX feedback_by_class on feedback (fix_class, received_at, id);

CREATE TABLE messages (
  id             text not null primary key,
  from_handle    text not null check (from_handle <> ''),
  is_authorised  integer not null check (is_authorised in (0, 1)),
  channel        text not null check (channel in ('cli', 'tui', 'gh-comment', 'email', 'daily-standup-reply')),
  severity       text not null check (severity in ('info', 'question', 'critical')),
  body           text not null check (body <> ''),
  state          text not null check (state in ('pending', 'seen', 'answered', 'escalated', 'closed')),
  agent          text,
  run_id         text references runs (id),
  task_id        text,
  context_url    text,
  ack            text not null,
  ack_sent_at    text not null,
  paused_task_id text,
  pause_problem  text,
  seen_by        text,
  seen_at        text,
  answer         text,
  answered_by    text,
  answered_at    text,
  escalated_to   text unique references feedback (id),
  escalated_at   text,
  closed_at      text,
  key            text unique,
  received_at    text not null,
  check ((seen_at is null) = (state = 'pending')),
  check (state <> 'answered' or (answer is not null and answered_at is not null)),
  check (state <> 'escalated' or escalated_to is not null),
  check ((closed_at is not null) = (state = 'closed'))
) strict;

CREATE INDEX messages_by_time on messages (received_at, id);

CREATE INDEX messages_by_state on messages (state, received_at, id);

CREATE TABLE trust_contract (
  id           text not null primary key,
  one          integer not null unique check (one = 1),
  handle       text not null check (handle <> ''),
  channel      text not null check (channel <> ''),
  public_key   text not null check (public_key <> ''),
  -- If the key is derived from a password: the parameters and salt of scrypt.
  phrase       text,
  persona_name text,
  tier         integer not null check (tier between 0 and 5),
  is_dev_mode  integer not null check (is_dev_mode in (0, 1)),
  auto_merge   text not null,
  reviewers    text not null,
  revision     integer not null check (revision >= 1),
  bound_at     text not null,
  updated_at   text not null
) strict;

CREATE TABLE trust_proposals (
  nonce       text not null primary key,
  contract_id text not null references trust_contract (id),
  change      text not null check (change in ('promote', 'hand-over', 'auto-merge', 'dev-mode', 'reviewers')),
  statement   text not null,
  proposed_by text,
  proposed_at text not null,
  expires_at  text not null,
  signature   text,
  applied_at  text,
  check ((signature is null) = (applied_at is null))
) strict;

CREATE TABLE trust_changes (
  id          text not null primary key,
  contract_id text not null references trust_contract (id),
  revision    integer not null unique check (revision >= 1),
  kind        text not null check (kind in ('bind', 'promote', 'demote', 'hand-over', 'auto-merge', 'dev-mode', 'reviewers')),
  from_tier   integer not null check (from_tier between 0 and 5),
  to_tier     integer not null check (to_tier between 0 and 5),
  handle      text not null,
  reason      text not null,
  by          text,
  details     text not null,
  nonce       text unique references trust_proposals (nonce),
  at          text not null,
  check (to_tier <= from_tier or nonce is not null)
) strict;

CREATE TABLE proofs (
  nonce       text not null primary key,
  contract_id text not null references trust_contract (id),
  operation   text not null check (operation <> ''),
  statement   text not null,
  signature   text not null check (signature <> ''),
  proved_at   text not null
) strict;

CREATE INDEX proofs_by_time on proofs (proved_at, nonce);

CREATE TABLE self_edits (
  id            text not null primary key,
  pr            text not null check (pr <> ''),
  fix_class     text not null check (fix_class in ('prompt', 'doc', 'test', 'tool', 'policy', 'architectural', 'state-machine', 'out-of-scope')),
  files         text not null,
  before_sha    text not null check (before_sha <> ''),
  after_sha     text not null check (after_sha <> ''),
  review_passes text not null,
  confidence    integer not null check (confidence between 0 and 100),
  em_review     text not null check (em_review <> ''),
  auto_merged   integer not null check (auto_merged in (0, 1)),
  feedback_id   text references feedback (id),
  edited_at     text not null,
  unique (pr, after_sha)
) strict;

CREATE INDEX self_edits_by_time on self_edits (edited_at, id);

CREATE INDEX self_edits_by_feedback on self_edits (feedback_id, edited_at, id);

CREATE TABLE notify_rules (
  id         text not null primary key,
  event      text not null check (event in ('needs_attention', 'budget', 'failure', 'done')),
  channel    text not null check (channel in ('command', 'webhook', 'desktop')),
  target     text not null,
  secret_env text check (secret_env <> ''),
  set_at     text not null,
  proof      text
) strict;

CREATE TABLE notices (
  id         text not null primary key,
  rule_id    text not null,
  key        text not null,
  event      text not null check (event in ('needs_attention', 'budget', 'failure', 'done')),
  what       text not null,
  run_id     text,
  state      text not null check (state in ('due', 'sending', 'sent', 'failed', 'unknown')),
  attempts   integer not null check (attempts >= 0),
  due_at     text not null,
  sender     text,
  taken_at   text,
  error      text,
  made_at    text not null,
  settled_at text,
  unique (rule_id, key),
  check ((state = 'sending') = (sender is not null)),
  check (state <> 'sending' or taken_at is not null)
) strict;

CREATE INDEX notices_open on notices (due_at, id) where state = 'due' or state = 'sending';

CREATE INDEX notices_by_time on notices (made_at, id);

CREATE TABLE workflow_versions (
  id          text not null primary key,
  number      integer not null unique check (number >= 1),
  name        text not null check (name <> ''),
  digest      text not null,
  transitions integer not null,
  aliases     integer not null,
  rules       integer not null,
  markers     integer not null,
  models      integer not null,
  loaded_by   text,
  loaded_at   text not null
) strict;

CREATE TABLE workflow_transitions (
  agent            text not null,
  status           text not null,
  next_agent       text,
  action           text not null check (action in ('spawn', 'respawn', 'spawn_batch', 'spawn_merge', 'validate_then_end', 'pause_for_user', 'end_session')),
  include_context  text not null,
  escalation_check integer not null check (escalation_check in (0, 1)),
  model_override   text,
  fallback_agent   text,
  bypass_qa        integer not null check (bypass_qa in (0, 1)),
  mandatory_review integer not null check (mandatory_review in (0, 1)),
  max_parallel     integer check (max_parallel >= 1),
  then_action      text check (then_action in ('check_phase')),
  iteration_budget integer check (iteration_budget >= 1),
  exhausted_status text,
  primary key (agent, status),
  check ((next_agent is null) = (action in ('validate_then_end', 'pause_for_user', 'end_session')))
) strict;

CREATE TABLE workflow_aliases (
  agent  text not null,
  status text not null,
  means  text not null,
  primary key (agent, status),
  foreign key (agent, means) references workflow_transitions (agent, status)
) strict;

CREATE TABLE workflow_rules (
  name        text not null primary key check (name in ('testing_mode_disabled', 'testing_mode_minimal', 'escalation_after_failures', 'security_sensitive', 'research_tasks')),
  description text not null,
  config      text not null
) strict;

CREATE TABLE workflow_markers (
  agent    text not null primary key,
  required text not null,
  workflow text not null
) strict;

CREATE TABLE workflow_models (
  agent text not null primary key,
  model text not null check (model <> '')
) strict;

CREATE TABLE packages (
  id               text not null primary key,
  number           integer not null unique check (number >= 1),
  run_id           text not null references runs (id),
  group_id         text,
  scope            text not null check (scope in ('group', 'global')),
  package_type     text not null check (package_type in ('research', 'failures', 'decisions', 'handoff', 'investigation')),
  priority         text not null check (priority in ('low', 'medium', 'high', 'critical')),
  file_path        text not null check (file_path <> ''),
  producer         text not null check (producer in ('project_manager', 'developer', 'senior_software_engineer', 'qa_expert', 'tech_lead', 'investigator', 'requirements_engineer', 'orchestrator')),
  summary          text not null check (length(summary) <= 200),
  size_bytes       integer check (size_bytes >= 0),
  version          integer not null check (version >= 1),
  supersedes_id    text unique references packages (id),
  superseded_by_id text unique,
  key              text,
  created_at       text not null,
  check ((group_id is null) = (scope = 'global')),
  check ((supersedes_id is null) = (version = 1)),
  unique (run_id, key)
) strict;

CREATE INDEX packages_by_run on packages (run_id, group_id, number);

CREATE TABLE context_turn (
  one integer not null primary key check (one = 1)
) strict;

CREATE TABLE context_consumers (
  package_id  text not null references packages (id),
  agent       text not null check (agent in ('project_manager', 'developer', 'senior_software_engineer', 'qa_expert', 'tech_lead', 'investigator', 'requirements_engineer', 'orchestrator')),
  run_id      text not null references runs (id),
  iteration   integer not null check (iteration >= 0),
  consumed_at text,
  primary key (package_id, agent)
) strict;

CREATE INDEX context_consumers_by_agent on context_consumers (run_id, agent, package_id);

CREATE TABLE context_consumptions (
  id          text not null primary key,
  scope_id    text not null unique,
  run_id      text not null references runs (id),
  group_id    text not null,
  agent       text not null check (agent in ('developer', 'qa_expert', 'tech_lead', 'senior_software_engineer', 'investigator')),
  iteration   integer not null check (iteration >= 0),
  package_id  text not null references packages (id),
  consumed_at text not null,
  unique (run_id, group_id, agent, iteration, package_id)
) strict;

CREATE INDEX context_consumptions_by_run on context_consumptions (run_id, consumed_at, id);

CREATE TABLE ci_runs (
  workflow_name text not null check (workflow_name <> ''),
  branch        text not null check (branch <> ''),
  ci_run_id     integer not null check (ci_run_id >= 0),
  started_at    text not null,
  completed_at  text,
  duration_seconds integer check (duration_seconds >= 0),
  conclusion    text check (conclusion in ('success', 'failure', 'cancelled', 'timed_out')),
  updated_at    text not null,
  primary key (workflow_name, branch, ci_run_id)
) strict;

CREATE INDEX ci_runs_by_time on ci_runs (started_at, ci_run_id, workflow_name, branch);

CREATE INDEX ci_runs_by_workflow on ci_runs (workflow_name, conclusion, started_at, ci_run_id, branch);

CREATE TABLE verdicts (
  id          text not null primary key,
  run_id      text not null references runs (id),
  task_id     text,
  name        text not null,
  tree        text not null,
  definition  text not null,
  environment text not null,
  outcome     text not null check (
    outcome = 'pass' or outcome = 'fail' or outcome = 'error' or outcome = 'flaky' or outcome = 'not-run'
  ),
  exit_code   integer,
  findings    text not null,
  artifact_id text,
  duration_ms integer not null check (duration_ms >= 0),
  created_at  text not null
) strict;

CREATE INDEX verdicts_by_tree on verdicts (run_id, tree, created_at, id);

CREATE INDEX verdicts_by_run on verdicts (run_id, created_at, id);

CREATE TABLE gates (
  name       text not null primary key,
  state      text not null check (state = 'open' or state = 'closed'),
  reason     text not null,
  closed_at  text,
  opens_at   text,
  closings   integer not null check (closings >= 0),
  updated_at text not null
) strict;

CREATE TABLE reviews (
  id          text not null primary key,
  run_id      text not null references runs (id),
  task_id     text,
  base        text not null,
  head        text not null,
  tree        text not null,
  patch       text not null,
  settings    text not null,
  verdict     text not null check (
    verdict = 'pass' or verdict = 'request-changes' or verdict = 'block' or verdict = 'unproven'
  ),
  confidence  integer check (confidence >= 0 and confidence <= 100),
  reasons     text not null,
  passes      text not null,
  findings    text not null,
  feedback_id text,
  created_at  text not null
) strict;

CREATE INDEX reviews_by_tree on reviews (tree, patch, created_at, id);

CREATE INDEX reviews_by_run on reviews (run_id, created_at, id);

CREATE TABLE review_passes (
  id         text not null primary key,
  run_id     text not null references runs (id),
  task_id    text,
  counts_for text not null,
  number     integer not null check (number >= 1 and number <= 7),
  result     text not null,
  created_at text not null
) strict;

CREATE INDEX review_passes_by_what on review_passes (run_id, counts_for, created_at, id);

CREATE INDEX reviews_by_base on reviews (base, created_at, id);

CREATE TABLE mends (
  id          text not null primary key,
  run_id      text not null references runs (id),
  feedback_id text not null,
  repo        text not null,
  state       text not null check (
    state = 'filed' or state = 'triaged' or state = 'located' or state = 'planned' or state = 'fixing' or state = 'fixed'
    or state = 'proven' or state = 'cleared' or state = 'published' or state = 'verified' or state = 'closed' or state = 'dropped'
  ),
  waits_for   text check (
    waits_for = 'model' or waits_for = 'approval' or waits_for = 'fix' or waits_for = 'gate' or waits_for = 'merge'
    or waits_for = 'weather' or waits_for = 'person'
  ),
  reason      text not null,
  moves       integer not null check (moves >= 0),
  rounds      integer not null check (rounds >= 0),
  base        text,
  branch      text,
  head        text,
  fix_class   text,
  confidence  integer check (confidence >= 0 and confidence <= 100),
  triage      text not null,
  places      text not null,
  plan        text not null,
  findings    text not null,
  fix_run_id  text,
  proof       text not null,
  tests       text not null,
  review_id   text,
  published   text not null,
  merged      text,
  for_run_id  text,
  created_at  text not null,
  updated_at  text not null
) strict;

CREATE INDEX mends_by_feedback on mends (feedback_id, created_at, id);

CREATE UNIQUE INDEX mends_open on mends (feedback_id, repo) where state <> 'closed' and state <> 'dropped';

CREATE TABLE effects (
  id            text not null primary key,
  run_id        text not null references runs (id),
  task_id       text,
  step          text not null,
  tool          text not null,
  key           text not null,
  state         text not null check (
    state = 'intended' or state = 'done' or state = 'failed' or state = 'unknown' or state = 'cleared'
  ),
  arguments     text not null,
  facts         text not null,
  actor         text,
  attempts      integer not null check (attempts >= 1),
  result        text,
  result_digest text,
  error         text,
  reconciled_by text,
  note          text,
  intended_at   text not null,
  settled_at    text,
  check ((state = 'intended') = (actor is not null)),
  check ((state = 'failed') = (error is not null))
) strict;

CREATE UNIQUE INDEX effects_by_key on effects (run_id, key);

CREATE INDEX effects_open on effects (run_id, intended_at, id) where state = 'intended' or state = 'unknown';

CREATE INDEX effects_by_time on effects (intended_at, id);

CREATE TABLE processes (
  id           text not null primary key,
  run_id       text not null references runs (id),
  task_id      text,
  command      text not null,
  cwd          text not null,
  root         text not null,
  folder       text not null,
  sandbox      text not null,
  state        text not null check (
    state = 'running' or state = 'exited' or state = 'stopped' or state = 'timed_out' or state = 'lost'
  ),
  keeper       text not null,
  pid          integer not null,
  exit_code    integer,
  signal       text,
  signals_sent text not null,
  started_at   text not null,
  ended_at     text,
  check ((state = 'running') = (ended_at is null))
) strict;

CREATE INDEX processes_by_run on processes (run_id, started_at, id);

CREATE INDEX processes_running on processes (run_id, started_at, id) where state = 'running';

CREATE TABLE edits (
  id         text not null primary key,
  repository text not null check (repository <> ''),
  path       text not null check (path <> ''),
  old_path   text,
  kind       text not null check (kind = 'tool' or kind = 'shell' or kind = 'reconstructed' or kind = 'person'),
  session    text,
  person     text,
  run_id     text,
  task_id    text,
  call_id    text,
  mixed_with text,
  old_blob   text,
  new_blob   text,
  head       text,
  edited_at  text not null,
  check ((kind = 'person') = (session is null)),
  check ((kind = 'person') = (person is not null)),
  check (old_blob is not null or new_blob is not null)
) strict;

CREATE INDEX edits_by_path on edits (path, id);

CREATE INDEX edits_by_blob on edits (new_blob) where new_blob is not null;

CREATE INDEX edits_by_run on edits (run_id, id) where run_id is not null;

CREATE TABLE worktree_snapshots (
  id         text not null primary key,
  repository text not null check (repository <> ''),
  worktree   text not null,
  session    text not null,
  moment     text not null check (moment = 'start' or moment = 'end'),
  commit_id  text not null,
  head       text,
  run_id     text,
  turn       text,
  skipped    text not null,
  taken_at   text not null
) strict;

CREATE INDEX worktree_snapshots_by_session on worktree_snapshots (session, id);

CREATE TABLE line_origins (
  repository text not null,
  commit_id  text not null,
  path       text not null,
  ranges     text not null,
  primary key (commit_id, path, repository)
) strict;

CREATE INDEX line_origins_by_path on line_origins (path);

CREATE TABLE run_tallies (
  run_id    text not null primary key references runs (id),
  seq       integer not null check (seq >= 1),
  hash      text not null,
  pending   integer not null,
  running   integer not null,
  waiting   integer not null,
  blocked   integer not null,
  paused    integer not null,
  done      integer not null,
  abandoned integer not null,
  failures  integer not null
) strict;

CREATE TABLE run_marks (
  run_id            text not null references runs (id),
  seq               integer not null check (seq >= 1),
  hash              text not null,
  pending           integer not null,
  running           integer not null,
  waiting           integer not null,
  blocked           integer not null,
  paused            integer not null,
  done              integer not null,
  abandoned         integer not null,
  failures          integer not null,
  attempts          integer not null,
  failed_attempts   integer not null,
  moments           integer not null,
  calls             integer not null,
  tokens            integer not null,
  cost_microdollars integer not null,
  unpriced_calls    integer not null,
  under_way         text not null,
  primary key (run_id, seq)
) strict;

CREATE TABLE run_attempts (
  run_id      text not null references runs (id),
  started_seq integer not null check (started_seq >= 1),
  task_id     text not null,
  number      integer not null,
  worker      text not null,
  started_at  text not null,
  ended_seq   integer,
  ended_at    text,
  outcome     text,
  primary key (run_id, started_seq)
) strict;

CREATE INDEX run_attempts_under_way on run_attempts (run_id) where ended_seq is null;

CREATE TABLE run_moments (
  run_id    text not null references runs (id),
  what      text not null check (
    what = 'failure' or what = 'question' or what = 'checkpoint' or what = 'pivot' or what = 'ended'
  ),
  seq       integer not null check (seq >= 1),
  record_id text,
  primary key (run_id, what, seq)
) strict;

CREATE TABLE record_firsts (
  run_id       text not null references runs (id),
  record_table text not null,
  seq          integer not null check (seq >= 1),
  record_id    text not null,
  primary key (run_id, record_table, seq)
) strict;

CREATE VIEW stream_heads as
select s.no, s.name, e.pos as head_pos, e.seq as head_seq, e.hash as head_hash, e.at as head_at
  from streams s
  join entries e on e.pos = (select max(pos) from entries where pos >= s.no * 4294967296 and pos < (s.no + 1) * 4294967296);

CREATE VIEW all_stream_heads as select * from stream_heads;

----------------------------------------------------------------------------------------------------
-- PostgreSQL
----------------------------------------------------------------------------------------------------

-- 0001_first

-- The journal: append-only entries in hash-chained streams, and their blobs.

-- Applied migrations. Each row has the digest of the row before it, so a changed row is detected.
create table schema_steps (
  version    bigint primary key,
  name       text collate "C" not null,
  checksum   text collate "C" not null,
  applied_at text collate "C" not null,
  digest     text collate "C"
);

-- `no` is local to this database. `in_order`: times of the entries never decrease, so a time is found by binary search.
create table streams (
  no         bigint generated by default as identity primary key,
  name       text collate "C" not null unique,
  created_at text collate "C" not null,
  in_order   bigint not null check (in_order in (0, 1))
);

-- PostgreSQL parses table checks for each statement, but a function once per connection.
create function entry_is_sound(
  p_pos bigint, p_seq bigint, p_kind varchar, p_phase varchar, p_confidence varchar, p_redacted bigint, p_record_table varchar,
  p_record_id varchar
) returns boolean language plpgsql immutable parallel safe as $$
begin
  return p_seq >= 1
    and p_seq = p_pos % 4294967296
    and p_kind in ('interaction', 'reasoning', 'event', 'tool', 'change')
    and (p_phase is null
      or p_phase in ('understanding', 'approach', 'decisions', 'risks', 'blockers', 'pivot', 'completion'))
    and (p_confidence is null or p_confidence in ('high', 'medium', 'low'))
    and p_redacted in (0, 1)
    and (p_kind = 'change') = (p_record_table is not null and p_record_id is not null);
end
$$;

-- `pos` combines the number of the stream and of the entry. One key orders a stream, so an append writes one index page less.
create table entries (
  pos            bigint not null primary key,
  stream         text collate "C" not null,
  seq            bigint not null,
  at             text collate "C" not null,
  hash           text collate "C" not null,
  kind           text collate "C" not null,
  subtype        text collate "C",
  agent          text collate "C",
  agent_id       text collate "C",
  group_id       text collate "C",
  task_id        text collate "C",
  iteration      bigint,
  phase          text collate "C",
  confidence     text collate "C",
  redacted       bigint not null default 0,
  key            text collate "C",
  record_table   text collate "C",
  record_id      text collate "C",
  refs           text collate "C",
  body_digest    text collate "C",
  payload_digest text collate "C",
  body           text collate "C",
  payload        text collate "C",
  constraint entries_sound
    check (entry_is_sound(pos, seq, kind, phase, confidence, redacted, record_table, record_id))
);

create unique index entries_by_key on entries (stream, coalesce(subtype, ''), coalesce(group_id, ''), key) where key is not null;
create index entries_by_record on entries (record_table, record_id, seq) where record_table is not null;
create index entries_by_kind on entries (kind, pos) where kind not in ('tool', 'change');
create index entries_by_subtype on entries (subtype, pos) where subtype is not null and kind <> 'change';
create index entries_by_agent on entries (agent, pos) where agent is not null and kind <> 'change';
create index entries_by_phase on entries (phase, pos) where phase is not null;
create index entries_by_group on entries (group_id, pos) where group_id is not null;
-- Entries about the record of a task are found by entries_by_record.
create index entries_by_task on entries (task_id, pos) where task_id is not null and record_table is distinct from 'tasks';
create index entries_by_time on entries (stream, at);

create table blobs (
  digest text collate "C" not null primary key,
  size   bigint not null check (size >= 0),
  bytes  bytea not null
);

create function entries_never_go() returns trigger language plpgsql as $$
begin
  raise exception 'journal entries are never deleted';
end $$;

create trigger entries_never_go before delete on entries for each row execute function entries_never_go();
create trigger entries_never_go_at_once before truncate on entries for each statement execute function entries_never_go();

-- Retention may replace a body or payload by its digest, but never the payload of a record.
create function entries_never_change() returns trigger language plpgsql as $$
begin
  if (new.pos, new.stream, new.seq, new.at, new.hash, new.kind, new.subtype, new.agent, new.agent_id, new.group_id, new.task_id,
      new.iteration, new.phase, new.confidence, new.redacted, new.key, new.record_table, new.record_id, new.refs)
     is not distinct from
     (old.pos, old.stream, old.seq, old.at, old.hash, old.kind, old.subtype, old.agent, old.agent_id, old.group_id, old.task_id,
      old.iteration, old.phase, old.confidence, old.redacted, old.key, old.record_table, old.record_id, old.refs)
     and old.kind <> 'change'
     and (new.body is not distinct from old.body or (new.body is null and new.body_digest is not null))
     and (new.payload is not distinct from old.payload or (new.payload is null and new.payload_digest is not null))
     and (old.body_digest is null or new.body_digest is not distinct from old.body_digest)
     and (old.payload_digest is null or new.payload_digest is not distinct from old.payload_digest)
  then
    return new;
  end if;
  raise exception 'journal entries are never changed';
end $$;

create trigger entries_never_change before update on entries for each row execute function entries_never_change();

-- Who listens to which stream; `*` is every stream. NOTIFY serializes commits, so it is sent only if somebody listens.
-- A row counts until it expires; its listener renews it. The table is unlogged: a crash may empty it.
create unlogged table listeners (
  stream text collate "C" not null,
  log    text collate "C" not null,
  until  timestamptz not null,
  primary key (stream, log)
);

-- One channel per stream, and one for those who listen to every stream.
create function announce(p_stream varchar) returns void language sql as $$
  select pg_notify(case l.stream when '*' then 'decklog' else 'decklog_' || md5(l.stream) end, left(l.stream, 200))
    from (select distinct stream from listeners where stream in (p_stream, '*') and until > now()) l
$$;

-- Lock a stream until the transaction ends. Return its head, the schema version, and whether somebody listens to the stream.
-- In PL/pgSQL each statement sees what was committed while the statement before it waited for the lock.
create function lock_stream(
  p_stream varchar, out version bigint, out name varchar, out no bigint, out pos bigint, out hash varchar, out at varchar,
  out is_listened_to boolean
) language plpgsql as $$
begin
  select s.no, s.name into no, name from streams s where s.name = p_stream for update;
  select e.pos, e.hash, e.at into pos, hash, at
    from entries e
   where e.pos >= no * 4294967296 and e.pos < (no + 1) * 4294967296
   order by e.pos desc
   limit 1;
  version := (select max(v.version) from schema_steps v);
  is_listened_to := exists (select 1 from listeners l where l.stream in (p_stream, '*') and l.until > now());
end
$$;

-- Words are indexed later, from a mark on, as on SQLite. An index on the entries took half of the time of an append.
create table entry_text (
  entry_pos bigint not null primary key,
  words     tsvector not null
);

create index entry_text_by_word on entry_text using gin (words);

create table entry_text_marks (
  stream_no bigint not null primary key,
  pos       bigint not null
);

-- Runs and the agents that work in them.
create table runs (
  id                 text collate "C" not null primary key,
  goal               text collate "C" not null,
  status             text collate "C" not null check (status in ('planning', 'active', 'paused', 'completed', 'failed', 'cancelled')),
  mode               text collate "C" check (mode in ('simple', 'parallel')),
  repo               text collate "C",
  branch             text collate "C",
  worktree           text collate "C",
  summary            text collate "C",
  current_task_id    text collate "C",
  cycles             bigint not null check (cycles >= 0),
  replans            bigint not null check (replans >= 0),
  metadata           text collate "C" not null,
  parent_run_id      text collate "C",
  parent_seq         bigint,
  key                text collate "C" unique,
  started_at         text collate "C" not null,
  updated_at         text collate "C" not null,
  ended_at           text collate "C",
  check ((ended_at is not null) = (status in ('completed', 'failed', 'cancelled')))
);

create index runs_by_start on runs (started_at, id);
create index runs_by_status on runs (status, started_at, id);
create index runs_by_end on runs (ended_at, id) where ended_at is not null;
create index runs_by_repo on runs (repo, started_at, id) where repo is not null;
create index runs_by_parent on runs (parent_run_id, started_at, id) where parent_run_id is not null;

create table agents (
  run_id             text collate "C" not null references runs (id),
  role               text collate "C" not null,
  session            text collate "C",
  turns              bigint not null check (turns >= 0),
  rotations          bigint not null check (rotations >= 0),
  last_prompt_path   text collate "C",
  last_response_path text collate "C",
  updated_at         text collate "C" not null,
  primary key (run_id, role)
);

-- Task groups of a run, ordered by `number`.
create table groups (
  run_id                text collate "C" not null references runs (id),
  group_id              text collate "C" not null check (length(group_id) between 1 and 64),
  number                bigint not null check (number >= 1),
  name                  text collate "C" not null,
  status                text collate "C" not null
    check (status in ('pending', 'in_progress', 'completed', 'failed', 'approved_pending_merge', 'merging')),
  assigned_to           text collate "C",
  revision_count        bigint not null check (revision_count >= 0),
  last_review_status    text collate "C" check (last_review_status in ('APPROVED', 'CHANGES_REQUESTED')),
  feature_branch        text collate "C",
  merge_status          text collate "C" check (merge_status in ('pending', 'in_progress', 'merged', 'conflict', 'test_failure')),
  complexity            bigint check (complexity between 1 and 10),
  initial_tier          text collate "C" not null check (initial_tier in ('Developer', 'Senior Software Engineer')),
  context_references    text collate "C",
  specializations       text collate "C",
  item_count            bigint not null check (item_count >= 1),
  security_sensitive    bigint not null check (security_sensitive in (0, 1)),
  qa_attempts           bigint not null check (qa_attempts >= 0),
  tl_review_attempts    bigint not null check (tl_review_attempts >= 0),
  component_path        text collate "C",
  review_iteration      bigint not null check (review_iteration >= 1),
  no_progress_count     bigint not null check (no_progress_count >= 0),
  blocking_issues_count bigint not null check (blocking_issues_count >= 0),
  speckit_task_ids      text collate "C",
  created_at            text collate "C" not null,
  updated_at            text collate "C" not null,
  primary key (run_id, group_id),
  unique (run_id, number)
);

create index groups_by_status on groups (status, run_id, number);

-- The plan of a run, its phases, and its success criteria.
create table plans (
  run_id           text collate "C" not null primary key references runs (id),
  original_prompt  text collate "C" not null,
  plan_text        text collate "C" not null,
  current_phase    bigint check (current_phase >= 0),
  total_phases     bigint not null check (total_phases >= 0),
  metadata         text collate "C",
  created_at       text collate "C" not null,
  updated_at       text collate "C" not null
);

create table phases (
  run_id           text collate "C" not null references plans (run_id),
  number           bigint not null check (number >= 0),
  name             text collate "C" not null,
  status           text collate "C" not null check (status in ('pending', 'in_progress', 'completed', 'blocked')),
  progress_percent bigint not null check (progress_percent between 0 and 100),
  started_at       text collate "C",
  completed_at     text collate "C",
  extra            text collate "C" not null,
  updated_at       text collate "C" not null,
  primary key (run_id, number),
  check (completed_at is null or status = 'completed')
);

create table criteria (
  run_id           text collate "C" not null references runs (id),
  number           bigint not null check (number >= 1),
  criterion        text collate "C" not null,
  status           text collate "C" not null check (status in ('pending', 'met', 'blocked', 'failed')),
  actual           text collate "C",
  evidence         text collate "C",
  required         bigint not null check (required in (0, 1)),
  evidence_commit  text collate "C",
  evidence_files   text collate "C",
  is_stale         bigint not null check (is_stale in (0, 1)),
  stale_reason     text collate "C",
  created_at       text collate "C" not null,
  updated_at       text collate "C" not null,
  primary key (run_id, number),
  unique (run_id, criterion),
  check ((is_stale = 1) = (stale_reason is not null)),
  check (status = 'met' or (is_stale = 0 and evidence_commit is null and evidence_files is null))
);

create index criteria_stale on criteria (run_id, number) where is_stale = 1;

-- Tasks, their leases and dependencies. Attempts have no table: they are read from the task's entries.
create table tasks (
  id                text collate "C" not null primary key,
  run_id            text collate "C" not null references runs (id),
  group_id          text collate "C",
  title             text collate "C" not null,
  objective         text collate "C" not null,
  state             text collate "C" not null check (
    state = 'pending' or state = 'running' or state = 'waiting' or state = 'blocked' or state = 'paused' or state = 'done'
    or state = 'abandoned'
  ),
  priority          bigint not null check (priority between 0 and 100),
  role              text collate "C",
  tags              text collate "C" not null,
  acceptance        text collate "C" not null,
  verification      text collate "C" not null,
  allowed_paths     text collate "C" not null,
  inputs            text collate "C" not null,
  not_before        text collate "C",
  open_dependencies bigint not null check (open_dependencies >= 0),
  max_attempts      bigint not null check (max_attempts >= 1),
  attempts          bigint not null check (attempts >= 0),
  failures          bigint not null check (failures >= 0),
  fence             bigint not null check (fence >= 0),
  worker            text collate "C",
  leased_at         text collate "C",
  leased_until      text collate "C",
  stage             text collate "C",
  state_name        text collate "C",
  trace_file        text collate "C",
  loop_version      bigint,
  outcome           text collate "C" check (
    outcome = 'done' or outcome = 'failed' or outcome = 'expired' or outcome = 'released' or outcome = 'blocked'
    or outcome = 'paused' or outcome = 'parked' or outcome = 'abandoned'
  ),
  summary           text collate "C",
  result            text collate "C",
  reason            text collate "C",
  blocker           text collate "C",
  blocker_repeats   bigint not null check (blocker_repeats >= 0),
  snapshot          text collate "C",
  reservation_id    text collate "C",
  key               text collate "C",
  created_at        text collate "C" not null,
  updated_at        text collate "C" not null,
  assigned_to       text collate "C",
  check ((state = 'running') = (worker is not null)),
  check ((state = 'running') = (leased_until is not null))
);

create index tasks_running on tasks (run_id, leased_until) where state = 'running';
create index tasks_by_creation on tasks (run_id, created_at, id);
create unique index tasks_by_key on tasks (run_id, key) where key is not null;
-- A task with an assignee is given to that worker only. The state is not in this index, so claims do not write it.
create index tasks_assigned on tasks (run_id, assigned_to) where assigned_to is not null;
create index tasks_blocked on tasks (updated_at, id) where state = 'blocked';
create index tasks_held on tasks (run_id, priority desc, created_at, id)
  where state = 'blocked' or state = 'waiting' or state = 'paused';
create index tasks_dependent on tasks (run_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies > 0;
create index tasks_waiting on tasks (updated_at, id) where state = 'waiting';
create index tasks_paused on tasks (updated_at, id) where state = 'paused';
-- Ready tasks in the order of claims, by assignee; '' is anybody. A claim compares the first task of its worker with the
-- first task of anybody.
create index tasks_ready on tasks (run_id, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0;
create index tasks_ready_by_group on tasks (run_id, group_id, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and group_id is not null;
create index tasks_ready_by_role on tasks (run_id, role, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and role is not null;
-- All ready tasks of a run in order, for lists.
create index tasks_ready_assigned on tasks (run_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and assigned_to is not null;

-- Links between tasks. Only `blocks` delays a task; a `parent` is complete when its children are.
create table dependencies (
  run_id     text collate "C" not null references runs (id),
  task_id    text collate "C" not null references tasks (id),
  depends_on text collate "C" not null references tasks (id),
  kind       text collate "C" not null default 'blocks'
    check (kind = 'blocks' or kind = 'parent' or kind = 'related' or kind = 'discovered-from'),
  primary key (task_id, depends_on),
  check (task_id <> depends_on)
);

create index dependencies_by_target on dependencies (depends_on, task_id);
create unique index dependencies_one_parent on dependencies (task_id) where kind = 'parent';

create table task_comments (
  id         text collate "C" not null primary key,
  run_id     text collate "C" not null references runs (id),
  task_id    text collate "C" not null references tasks (id),
  author     text collate "C" not null,
  body       text collate "C" not null,
  created_at text collate "C" not null
);

create index task_comments_by_task on task_comments (task_id, created_at, id);

-- Reusable sets of tasks. A version is never changed, so created tasks can be traced to it.
create table templates (
  name        text collate "C" not null,
  version     bigint not null check (version >= 1),
  description text collate "C" not null,
  tasks       text collate "C" not null,
  created_at  text collate "C" not null,
  primary key (name, version)
);

-- Recurring tasks of a run. From `next_at` on, a claim or an overview creates the tasks; it is null while paused.
create table schedules (
  id              text collate "C" not null primary key,
  run_id          text collate "C" not null references runs (id),
  name            text collate "C" not null,
  rule            text collate "C" not null,
  zone            text collate "C" not null,
  catch_up        text collate "C" not null check (catch_up = 'none' or catch_up = 'one' or catch_up = 'all'),
  catch_up_limit  bigint not null check (catch_up_limit between 1 and 100),
  late_seconds    bigint not null check (late_seconds >= 0),
  task            text collate "C",
  template        text collate "C",
  template_values text collate "C" not null,
  next_at         text collate "C",
  last_at         text collate "C",
  occurrences     bigint not null check (occurrences >= 0),
  reason          text collate "C",
  created_at      text collate "C" not null,
  updated_at      text collate "C" not null,
  unique (run_id, name),
  check ((task is null) <> (template is null))
);

create index schedules_due on schedules (run_id, next_at) where next_at is not null;

-- PostgreSQL parses table checks for each statement, but a function once per connection.
create function task_is_sound(
  p_state varchar, p_outcome varchar, p_worker varchar, p_leased_until varchar, p_priority bigint, p_open_dependencies bigint,
  p_max_attempts bigint, p_attempts bigint, p_failures bigint, p_fence bigint, p_blocker_repeats bigint
) returns boolean language plpgsql immutable parallel safe as $$
begin
  return p_state in ('pending', 'running', 'waiting', 'blocked', 'paused', 'done', 'abandoned')
    and (p_outcome is null
      or p_outcome in ('done', 'failed', 'expired', 'released', 'blocked', 'paused', 'parked', 'abandoned'))
    and (p_state = 'running') = (p_worker is not null)
    and (p_state = 'running') = (p_leased_until is not null)
    and p_priority between 0 and 100
    and p_open_dependencies >= 0
    and p_max_attempts >= 1
    and p_attempts >= 0
    and p_failures >= 0
    and p_fence >= 0
    and p_blocker_repeats >= 0;
end
$$;

alter table tasks
  drop constraint tasks_state_check,
  drop constraint tasks_outcome_check,
  drop constraint tasks_check,
  drop constraint tasks_check1,
  drop constraint tasks_priority_check,
  drop constraint tasks_open_dependencies_check,
  drop constraint tasks_max_attempts_check,
  drop constraint tasks_attempts_check,
  drop constraint tasks_failures_check,
  drop constraint tasks_fence_check,
  drop constraint tasks_blocker_repeats_check,
  add constraint tasks_sound
    check (
      task_is_sound(
        state, outcome, worker, leased_until, priority, open_dependencies, max_attempts, attempts, failures, fence,
        blocker_repeats
      )
    );

-- Tags of ready tasks in the order of claims; `rank` is the negated priority. Triggers maintain it.
create table ready_tags (
  tag        text collate "C" not null,
  run_id     text collate "C" not null,
  rank       bigint not null,
  created_at text collate "C" not null,
  task_id    text collate "C" not null,
  assigned_to text collate "C" not null,
  primary key (tag, run_id, assigned_to, rank, created_at, task_id)
);

create function tags_of(list text) returns setof text language plpgsql immutable as $$
begin
  return query
  select distinct tag #>> '{}'
    from json_array_elements(list::json) as tag
   where json_typeof(tag) = 'string';
exception when invalid_text_representation or invalid_parameter_value then
  return;
end $$;

create function keep_ready_tags() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.state = 'pending' and old.open_dependencies = 0 then
    delete from ready_tags
     where tag in (select tags_of(old.tags))
       and run_id = old.run_id and assigned_to = coalesce(old.assigned_to, '') and rank = -old.priority
       and created_at = old.created_at and task_id = old.id;
  end if;
  if tg_op <> 'DELETE' and new.state = 'pending' and new.open_dependencies = 0 then
    insert into ready_tags (tag, run_id, assigned_to, rank, created_at, task_id)
    select tag, new.run_id, coalesce(new.assigned_to, ''), -new.priority, new.created_at, new.id
      from tags_of(new.tags) tag
    on conflict do nothing;
  end if;
  return null;
end $$;

create trigger ready_tags_added after insert on tasks for each row
  when (new.tags <> '[]' and new.state = 'pending' and new.open_dependencies = 0) execute function keep_ready_tags();
create trigger ready_tags_changed
  after update of id, run_id, state, open_dependencies, priority, tags, created_at, assigned_to on tasks for each row
  when (old.tags <> '[]' or new.tags <> '[]') execute function keep_ready_tags();
create trigger ready_tags_removed after delete on tasks for each row
  when (old.tags <> '[]' and old.state = 'pending' and old.open_dependencies = 0) execute function keep_ready_tags();

-- State documents: the current version of each, and all earlier versions. The documents are blobs.
create table states (
  run_id     text collate "C" not null references runs (id),
  group_id   text collate "C" not null,
  name       text collate "C" not null,
  version    bigint not null check (version >= 1),
  digest     text collate "C" not null,
  iteration  bigint check (iteration >= 1),
  updated_at text collate "C" not null,
  primary key (run_id, group_id, name),
  check (name <> 'investigation' or lower(group_id) <> 'global')
);

create table state_versions (
  run_id    text collate "C" not null,
  group_id  text collate "C" not null,
  name      text collate "C" not null,
  version   bigint not null check (version >= 1),
  digest    text collate "C" not null,
  redacted  bigint not null check (redacted in (0, 1)),
  iteration bigint check (iteration >= 1),
  agent     text collate "C",
  saved_at  text collate "C" not null,
  primary key (run_id, group_id, name, version),
  foreign key (run_id, group_id, name) references states (run_id, group_id, name)
);

-- Checkpoints of a run, at entry `seq` of its stream. A large payload is a blob.
create table checkpoints (
  id         text collate "C" not null primary key,
  run_id     text collate "C" not null references runs (id),
  number     bigint not null check (number >= 1),
  seq        bigint not null check (seq >= 1),
  name       text collate "C",
  status     text collate "C",
  payload    text collate "C",
  digest     text collate "C" not null,
  redacted   bigint not null check (redacted in (0, 1)),
  key        text collate "C",
  created_at text collate "C" not null,
  unique (run_id, number),
  unique (run_id, key)
);

-- What a paused task needs to continue; `pauses` counts the pauses.
create table snapshots (
  run_id    text collate "C" not null references runs (id),
  task_id   text collate "C" not null check (task_id <> ''),
  paused_at text collate "C" not null,
  reason    text collate "C" not null,
  pauses    bigint not null check (pauses >= 1),
  digest    text collate "C" not null,
  redacted  bigint not null check (redacted in (0, 1)),
  saved_at  text collate "C" not null,
  primary key (run_id, task_id)
);

create index snapshots_by_task on snapshots (task_id);

-- Files that a run created or used. Their bytes, if stored, are a blob with this digest.
create table artifacts (
  id         text collate "C" not null primary key,
  run_id     text collate "C" not null references runs (id),
  number     bigint not null check (number >= 1),
  task_id    text collate "C",
  role       text collate "C",
  kind       text collate "C" not null,
  path       text collate "C" not null,
  media_type text collate "C" not null,
  digest     text collate "C" check (length(digest) = 64),
  size       bigint check (size >= 0),
  redacted   bigint not null check (redacted in (0, 1)),
  metadata   text collate "C" not null,
  created_at text collate "C" not null,
  unique (run_id, number),
  unique (run_id, path, digest)
);

create index artifacts_by_time on artifacts (created_at, run_id, number);
create index artifacts_by_digest on artifacts (digest) where digest is not null;

-- Outputs of skills. `iteration` counts the outputs of one skill by one agent for one group; `number` counts all of the run.
create table outputs (
  id        text collate "C" not null primary key,
  run_id    text collate "C" not null references runs (id),
  number    bigint not null check (number >= 1),
  skill     text collate "C" not null check (skill <> ''),
  agent     text collate "C" check (agent <> ''),
  group_id  text collate "C" check (group_id <> ''),
  iteration bigint not null check (iteration >= 1),
  document  text collate "C",
  digest    text collate "C" not null,
  redacted  bigint not null check (redacted in (0, 1)),
  key       text collate "C",
  saved_at  text collate "C" not null,
  unique (run_id, number),
  unique (run_id, key)
);

-- Nulls are distinct in a unique index: without coalesce, outputs without an agent could share an iteration.
create unique index outputs_by_iteration on outputs (run_id, skill, coalesce(agent, ''), coalesce(group_id, ''), iteration);
create index outputs_by_skill on outputs (run_id, skill, number);
create index outputs_by_time on outputs (run_id, saved_at);

-- State of LangGraph's graphs: checkpoints of threads, pending writes, and items of its store.
create table graph_checkpoints (
  run_id        text collate "C" not null references runs (id),
  namespace     text collate "C" not null,
  checkpoint_id text collate "C" not null,
  thread_id     text collate "C" not null,
  parent_id     text collate "C",
  encoding      text collate "C" not null,
  digest        text collate "C" not null,
  metadata      text collate "C" not null,
  graph_run_id  text collate "C",
  redacted      bigint not null check (redacted = 0 or redacted = 1),
  saved_at      text collate "C" not null,
  primary key (run_id, namespace, checkpoint_id)
);

create index graph_checkpoints_by_id on graph_checkpoints (checkpoint_id);
create index graph_checkpoints_by_graph_run on graph_checkpoints (graph_run_id) where graph_run_id is not null;

create table graph_writes (
  run_id        text collate "C" not null references runs (id),
  namespace     text collate "C" not null,
  checkpoint_id text collate "C" not null,
  task_id       text collate "C" not null,
  number        bigint not null,
  task_path     text collate "C" not null,
  channel       text collate "C" not null,
  encoding      text collate "C" not null,
  digest        text collate "C" not null,
  redacted      bigint not null check (redacted = 0 or redacted = 1),
  saved_at      text collate "C" not null,
  primary key (run_id, namespace, checkpoint_id, task_id, number)
);

create table graph_items (
  namespace   text collate "C" not null,
  key         text collate "C" not null,
  value       text collate "C" not null,
  created_at  text collate "C" not null,
  updated_at  text collate "C" not null,
  indexed     text collate "C",
  ttl_seconds double precision,
  expires_at  text collate "C",
  primary key (namespace, key)
);

create index graph_items_by_expiry on graph_items (expires_at) where expires_at is not null;

-- Money and tokens: prices, charges, budgets and reservations.

-- In microdollars per million tokens; null if unknown. Long prompts that cost more have a separate row.
create table prices (
  model              text collate "C" not null,
  valid_from         text collate "C" not null,
  over_tokens        bigint not null check (over_tokens >= 0),
  input_price        bigint not null check (input_price >= 0),
  cache_read_price   bigint check (cache_read_price >= 0),
  cache_create_price bigint check (cache_create_price >= 0),
  output_price       bigint not null check (output_price >= 0),
  source             text collate "C",
  sourced_on         text collate "C",
  primary key (model, valid_from, over_tokens)
);

create table budgets (
  id           text collate "C" not null primary key,
  scope        text collate "C" not null check (scope in ('all', 'run', 'group', 'task', 'agent')),
  scope_id     text collate "C",
  period       text collate "C" not null check (period in ('day', 'week', 'month', 'forever')),
  unit         text collate "C" not null check (unit in ('microdollars', 'tokens')),
  ceiling      bigint not null check (ceiling >= 0),
  action       text collate "C" not null check (action in ('warn', 'stop')),
  warn_percent bigint not null check (warn_percent >= 1 and warn_percent <= 100),
  set_at       text collate "C" not null,
  proof        text collate "C",
  check ((scope = 'all') = (scope_id is null))
);

-- Scope and id in one text, so that the budgets of a charge are one lookup instead of five.
create unique index budgets_by_scope on budgets ((scope || ' ' || coalesce(scope_id, '')), period, unit);

create table reservations (
  id                text collate "C" not null primary key,
  state             text collate "C" not null check (state = 'open' or state = 'settled' or state = 'released'),
  microdollars      bigint not null check (microdollars >= 0),
  tokens            bigint not null check (tokens >= 0),
  used_microdollars bigint not null check (used_microdollars >= 0),
  used_tokens       bigint not null check (used_tokens >= 0),
  reserved_at       text collate "C" not null,
  expires_at        text collate "C" not null,
  ended_at          text collate "C",
  run_id            text collate "C" references runs (id),
  group_id          text collate "C",
  task_id           text collate "C",
  agent             text collate "C",
  holder            text collate "C",
  key               text collate "C",
  check ((ended_at is null) = (state = 'open'))
);

create index reservations_open on reservations (expires_at) where state = 'open';
create unique index reservations_by_key on reservations (coalesce(run_id, ''), key) where key is not null;

create table charges (
  id                  text collate "C" not null primary key,
  occurred_at         text collate "C" not null,
  model               text collate "C" not null,
  input_tokens        bigint not null check (input_tokens >= 0),
  cache_read_tokens   bigint not null check (cache_read_tokens >= 0),
  cache_create_tokens bigint not null check (cache_create_tokens >= 0),
  output_tokens       bigint not null check (output_tokens >= 0),
  cost_microdollars   bigint check (cost_microdollars >= 0),
  call_site           text collate "C",
  agent               text collate "C",
  agent_id            text collate "C",
  run_id              text collate "C" references runs (id),
  group_id            text collate "C",
  task_id             text collate "C",
  reservation_id      text collate "C" references reservations (id),
  counted_at          text collate "C",
  overdrew            bigint not null check (overdrew = 0 or overdrew = 1),
  is_late             bigint not null check (is_late = 0 or is_late = 1),
  key                 text collate "C",
  -- The provider's id of a response, so that two recorders do not charge it twice. Not unique, so that logs can be merged.
  answer_id           text collate "C"
);

-- Each further index slows a charge by some percent: only columns that lists and sums start from have one.
create index charges_by_time on charges (occurred_at, id);
create index charges_by_run on charges (run_id) where run_id is not null;
create index charges_by_task on charges (task_id) where task_id is not null;
create unique index charges_by_key on charges (coalesce(run_id, ''), key) where key is not null;
create index charges_by_answer on charges (answer_id) where answer_id is not null;

-- Derived: the charges of each budget by day. `budgets rebuild` computes them again.
create table budget_days (
  budget_id      text collate "C" not null references budgets (id) on delete cascade,
  day            text collate "C" not null,
  microdollars   bigint not null,
  tokens         bigint not null,
  calls          bigint not null,
  unpriced_calls bigint not null,
  as_of          text collate "C" not null,
  primary key (budget_id, day)
);

-- Locks: a charge takes one row, a new budget takes all of them while it sums up earlier charges.
create table budget_gates (
  no bigint not null primary key
);

insert into budget_gates (no) values
  (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
  (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31);

-- Derived: spending by day (UTC) of the charge, maintained by triggers of `charges`. An empty text means no run or no agent.
create table spend_days (
  run_id              text collate "C" not null,
  day                 text collate "C" not null,
  model               text collate "C" not null,
  agent               text collate "C" not null,
  calls               bigint not null,
  input_tokens        bigint not null,
  cache_read_tokens   bigint not null,
  cache_create_tokens bigint not null,
  output_tokens       bigint not null,
  cost_microdollars   bigint not null,
  unpriced_calls      bigint not null,
  primary key (run_id, day, model, agent)
);

create index spend_days_by_day on spend_days (day);

-- Each charge is added to the sums of its day.
create function add_spending() returns trigger language plpgsql as $$
begin
  insert into spend_days
    (run_id, day, model, agent, calls,
     input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
  select coalesce(run_id, ''), substr(occurred_at, 1, 10), model, coalesce(agent, ''),
         count(*), sum(input_tokens), sum(cache_read_tokens), sum(cache_create_tokens), sum(output_tokens),
         coalesce(sum(cost_microdollars), 0), (count(*) - count(cost_microdollars))
    from added
   group by 1, 2, 3, 4
   order by 1, 2, 3, 4
  on conflict (run_id, day, model, agent) do update set
  calls = spend_days.calls + excluded.calls,
  input_tokens = spend_days.input_tokens + excluded.input_tokens,
  cache_read_tokens = spend_days.cache_read_tokens + excluded.cache_read_tokens,
  cache_create_tokens = spend_days.cache_create_tokens + excluded.cache_create_tokens,
  output_tokens = spend_days.output_tokens + excluded.output_tokens,
  cost_microdollars = spend_days.cost_microdollars + excluded.cost_microdollars,
  unpriced_calls = spend_days.unpriced_calls + excluded.unpriced_calls;
  return null;
end $$;

create function subtract_spending() returns trigger language plpgsql as $$
begin
  insert into spend_days
    (run_id, day, model, agent, calls,
     input_tokens, cache_read_tokens, cache_create_tokens, output_tokens, cost_microdollars, unpriced_calls)
  select coalesce(run_id, ''), substr(occurred_at, 1, 10), model, coalesce(agent, ''),
         -count(*), -sum(input_tokens), -sum(cache_read_tokens), -sum(cache_create_tokens), -sum(output_tokens),
         -coalesce(sum(cost_microdollars), 0), -(count(*) - count(cost_microdollars))
    from removed
   group by 1, 2, 3, 4
   order by 1, 2, 3, 4
  on conflict (run_id, day, model, agent) do update set
  calls = spend_days.calls + excluded.calls,
  input_tokens = spend_days.input_tokens + excluded.input_tokens,
  cache_read_tokens = spend_days.cache_read_tokens + excluded.cache_read_tokens,
  cache_create_tokens = spend_days.cache_create_tokens + excluded.cache_create_tokens,
  output_tokens = spend_days.output_tokens + excluded.output_tokens,
  cost_microdollars = spend_days.cost_microdollars + excluded.cost_microdollars,
  unpriced_calls = spend_days.unpriced_calls + excluded.unpriced_calls;
  delete from spend_days d using removed r
   where d.run_id = coalesce(r.run_id, '') and d.day = substr(r.occurred_at, 1, 10) and d.calls = 0;
  return null;
end $$;

create trigger spend_days_1_subtract after update on charges
  referencing old table as removed for each statement execute function subtract_spending();
create trigger spend_days_2_add after update on charges
  referencing new table as added for each statement execute function add_spending();
create trigger spend_days_charged after insert on charges
  referencing new table as added for each statement execute function add_spending();
create trigger spend_days_removed after delete on charges
  referencing old table as removed for each statement execute function subtract_spending();

-- Memory: lessons by topic with their sightings, error patterns, strategies and learnings.
create table topics (
  name        text collate "C" not null primary key,
  description text collate "C" not null,
  created_at  text collate "C" not null
);

create table lessons (
  id               text collate "C" not null primary key,
  topic            text collate "C" not null,
  project          text collate "C",
  body             text collate "C" not null,
  fingerprint      text collate "C" not null,
  payload          text collate "C" not null,
  confidence       bigint not null check (confidence between 0 and 100),
  source_kind      text collate "C" not null,
  source_id        text collate "C",
  run_id           text collate "C" references runs (id),
  task_id          text collate "C",
  sightings        bigint not null check (sightings >= 1),
  recall_count     bigint not null check (recall_count >= 0),
  useful_count     bigint not null check (useful_count >= 0),
  harmful_count    bigint not null check (harmful_count >= 0),
  superseded_by    text collate "C" references lessons (id) check (superseded_by <> id),
  created_at       text collate "C" not null,
  last_seen_at     text collate "C" not null,
  last_recalled_at text collate "C",
  -- Versions, paths and a commit that the lesson applies to; empty means everything.
  scope            text collate "C" not null default '{}',
  -- When its scope changed, and how.
  outdated_at      text collate "C",
  outdated_by      text collate "C",
  -- When it was retired without a successor.
  retired_at       text collate "C"
);

create index lessons_by_fingerprint on lessons (fingerprint);
create index lessons_by_topic on lessons (topic, created_at, id);
create index lessons_by_creation on lessons (created_at, id);
create index lessons_by_recall on lessons (last_recalled_at);
create index lessons_by_successor on lessons (superseded_by) where superseded_by is not null;

create table sightings (
  id          text collate "C" not null primary key,
  lesson_id   text collate "C" not null references lessons (id),
  body        text collate "C",
  source_kind text collate "C" not null,
  source_id   text collate "C",
  run_id      text collate "C" references runs (id),
  task_id     text collate "C",
  refs        text collate "C" not null,
  key         text collate "C" unique,
  seen_at     text collate "C" not null
);

create index sightings_by_lesson on sightings (lesson_id, seen_at, id);

create table patterns (
  pattern_hash text collate "C" not null,
  project      text collate "C" not null,
  signature    text collate "C" not null,
  solution     text collate "C" not null,
  confidence   double precision not null check (confidence >= 0 and confidence <= 1),
  occurrences  bigint not null check (occurrences >= 1),
  lang         text collate "C",
  ttl_days     bigint not null check (ttl_days > 0),
  created_at   text collate "C" not null,
  last_seen_at text collate "C" not null,
  primary key (pattern_hash, project)
);

create index patterns_by_project on patterns (project, lang);
create index patterns_by_age on patterns (ttl_days, last_seen_at);

create table strategies (
  id           text collate "C" not null primary key,
  project      text collate "C" not null,
  topic        text collate "C" not null check (topic in ('implementation', 'architecture', 'methodology', 'general')),
  insight      text collate "C" not null,
  helpfulness  bigint not null check (helpfulness >= 0),
  lang         text collate "C",
  framework    text collate "C",
  refs         text collate "C" not null,
  created_at   text collate "C" not null,
  last_seen_at text collate "C" not null
);

create index strategies_by_project on strategies (project, helpfulness, last_seen_at);

create table learnings (
  id          text collate "C" not null primary key,
  task_id     text collate "C" not null,
  observation text collate "C" not null,
  candidate   text collate "C" not null,
  state       text collate "C" not null check (state in ('open', 'promoted', 'dismissed')),
  noted_at    text collate "C" not null,
  run_id      text collate "C" references runs (id),
  key         text collate "C" unique,
  decided_at  text collate "C",
  decided_by  text collate "C",
  reason      text collate "C",
  check ((decided_at is null) = (state = 'open'))
);

create index learnings_by_state on learnings (state, noted_at, id);
create index learnings_by_time on learnings (noted_at, id);

-- A lock: one row, taken to add a lesson, so that two workers do not add the same lesson at once.
create table lesson_desk (
  id bigint not null primary key check (id = 1)
);
insert into lesson_desk (id) values (1);

-- Contradicting lessons, until somebody decides which one holds.
create table contradictions (
  id         text collate "C" not null primary key,
  lesson_id  text collate "C" not null references lessons (id),
  other_id   text collate "C" not null references lessons (id),
  about      text collate "C" not null,
  state      text collate "C" not null check (state in ('open', 'settled', 'both_hold')),
  found_at   text collate "C" not null,
  settled_at text collate "C",
  settled_by text collate "C",
  reason     text collate "C",
  check (lesson_id <> other_id),
  check ((settled_at is null) = (state = 'open')),
  unique (lesson_id, other_id)
);

create index contradictions_by_state on contradictions (state, found_at, id);
create index contradictions_by_other on contradictions (other_id);

-- Proposed lessons with their evidence, until somebody decides. `subject` identifies one when it is observed again.
create table proposals (
  id          text collate "C" not null primary key,
  kind        text collate "C" not null check (kind in ('check', 'attempt', 'blocker', 'fix', 'review', 'correction')),
  subject     text collate "C" not null unique,
  topic       text collate "C" not null,
  body        text collate "C" not null,
  payload     text collate "C" not null,
  state       text collate "C" not null check (state in ('gathering', 'open', 'known', 'accepted', 'dismissed')),
  confidence  bigint not null check (confidence between 0 and 100),
  because     text collate "C" not null,
  evidence    text collate "C" not null,
  run_id      text collate "C" references runs (id),
  task_id     text collate "C",
  lesson_id   text collate "C" references lessons (id),
  proposed_at text collate "C" not null,
  seen_at     text collate "C" not null,
  decided_at  text collate "C",
  decided_by  text collate "C",
  reason      text collate "C",
  check ((lesson_id is not null) = (state in ('known', 'accepted'))),
  check ((decided_at is not null) = (state in ('accepted', 'dismissed')))
);

create index proposals_by_state on proposals (state, confidence, proposed_at, id);

-- How far each stream was searched for lessons to propose. The hash is that of the entry, so verify can compare it.
create table proposal_marks (
  stream text collate "C" not null primary key,
  seq    bigint not null check (seq >= 1),
  hash   text collate "C" not null
);

-- Numbers of indexed lessons and terms, for the weight of rare words.
create table lesson_sums (
  id      bigint not null primary key check (id = 1),
  lessons bigint not null,
  terms   bigint not null
);
insert into lesson_sums (id, lessons, terms) values (1, 0, 0);

-- How far the index of terms has followed the stream of the memory.
create table lesson_marks (
  name text collate "C" not null primary key,
  seq  bigint not null
);

-- Derived: the terms (stems and names) of valid lessons, with the counts and lengths that BM25 needs.
create table lesson_text (
  no        bigint generated always as identity primary key,
  lesson_id text collate "C" not null unique references lessons (id),
  topic     text collate "C" not null,
  project   text collate "C",
  length    integer not null
);

create table lesson_terms (
  term      text collate "C" not null,
  lesson_no bigint not null references lesson_text (no) on delete cascade,
  times     integer not null,
  length    integer not null,
  primary key (term, lesson_no) include (times, length)
);
create index lesson_terms_by_lesson on lesson_terms (lesson_no);

-- An array, so that the log needs no extension. If pgvector is installed, it compares the vectors.
create table lesson_vectors (
  lesson_id  text collate "C" not null references lessons (id),
  embedder   text collate "C" not null,
  dimensions bigint not null check (dimensions > 0),
  vector     real[] not null check (cardinality(vector) = dimensions),
  primary key (embedder, lesson_id)
);

-- Approvals: a question about one exact subject, and its answer.
-- `number` orders the approvals of a run, since times can be equal or imported.
create table approvals (
  id              text collate "C" not null primary key,
  run_id          text collate "C" not null references runs (id),
  number          bigint not null check (number >= 1),
  state           text collate "C" not null check (state in ('open', 'granted', 'denied', 'expired', 'withdrawn')),
  question        text collate "C",
  subject         text collate "C",
  subject_digest  text collate "C" check (length(subject_digest) = 64),
  asked_by        text collate "C" check (asked_by <> ''),
  asked_of        text collate "C",
  asked_at        text collate "C" not null,
  source          text collate "C",
  task_id         text collate "C",
  expires_at      text collate "C",
  default_verdict text collate "C" check (default_verdict in ('granted', 'denied')),
  verdict         text collate "C",
  decided_by      text collate "C" check (decided_by <> ''),
  decided_at      text collate "C",
  rationale       text collate "C",
  payload         text collate "C" not null,
  key             text collate "C",
  -- The signature of the decision. No foreign key: it refers to the decision and is written after it.
  proof           text collate "C",
  -- The number of uses granted, the time until which it is valid, and the number of uses so far.
  max_uses        bigint check (max_uses >= 1),
  valid_until     text collate "C",
  uses            bigint check (uses >= 0),
  -- The digest of the stored subject, which differs if parts were redacted.
  about_digest    text collate "C" check (length(about_digest) = 64),
  redacted        bigint not null default 0 check (redacted in (0, 1)),
  unique (run_id, number),
  unique (run_id, key),
  -- The requester never decides.
  check (lower(trim(asked_by)) <> lower(trim(decided_by))),
  -- A verdict without a request has no subject, so it can't approve anything.
  check ((asked_by is null) = (subject_digest is null) and (asked_by is null) = (question is null)),
  check (asked_by is not null or state in ('granted', 'denied')),
  check ((state = 'open') = (decided_at is null)),
  check (decided_by is null or state in ('granted', 'denied')),
  -- A question is answered by somebody, or by its default.
  check (decided_by is not null or asked_by is null or state not in ('granted', 'denied') or coalesce(default_verdict, '') = state),
  check (default_verdict is null or expires_at is not null)
);

create index approvals_by_time on approvals (asked_at, run_id, number);
create index approvals_by_source on approvals (run_id, source, number) where source is not null;
create index approvals_by_digest on approvals (run_id, subject_digest) where subject_digest is not null;
create index approvals_open on approvals (run_id, expires_at) where state = 'open';

-- Messages from people, and feedback.
create table feedback (
  id                   text collate "C" not null primary key,
  message_id           text collate "C" unique,
  from_handle          text collate "C" not null check (from_handle <> ''),
  channel              text collate "C" not null check (channel <> ''),
  severity             text collate "C" not null check (severity in ('low', 'med', 'high', 'critical')),
  body                 text collate "C" not null check (body <> ''),
  state                text collate "C" not null check (state in ('pending', 'triaged', 'in-fix', 'fix-pr-open', 'verified', 'rejected', 'closed')),
  fix_class            text collate "C" check (fix_class in ('prompt', 'doc', 'test', 'tool', 'policy', 'architectural', 'state-machine', 'out-of-scope')),
  context_url          text collate "C",
  root_cause           text collate "C",
  success_criterion    text collate "C",
  fix_pr_url           text collate "C",
  regression_test_path text collate "C",
  notes                text collate "C" not null,
  key                  text collate "C" unique,
  received_at          text collate "C" not null,
  updated_at           text collate "C" not null,
  closed_at            text collate "C",
  check (state = 'pending' or fix_class is not null),
  check (state <> 'fix-pr-open' or (fix_pr_url is not null and fix_pr_url <> '')),
  check (state <> 'verified' or (regression_test_path is not null and regression_test_path <> '')),
  check ((closed_at is not null) = (state = 'closed'))
);

create index feedback_by_time on feedback (received_at, id);
create index feedback_by_state on feedback (state, received_at, id);
create index feedback_by_class on feedback (fix_class, received_at, id);

-- Recipients of a message: `agent`, `run_id` and `task_id` narrow them; without any it is for everybody.
create table messages (
  id             text collate "C" not null primary key,
  from_handle    text collate "C" not null check (from_handle <> ''),
  is_authorised  bigint not null check (is_authorised in (0, 1)),
  channel        text collate "C" not null check (channel in ('cli', 'tui', 'gh-comment', 'email', 'daily-standup-reply')),
  severity       text collate "C" not null check (severity in ('info', 'question', 'critical')),
  body           text collate "C" not null check (body <> ''),
  state          text collate "C" not null check (state in ('pending', 'seen', 'answered', 'escalated', 'closed')),
  agent          text collate "C",
  run_id         text collate "C" references runs (id),
  task_id        text collate "C",
  context_url    text collate "C",
  ack            text collate "C" not null,
  ack_sent_at    text collate "C" not null,
  paused_task_id text collate "C",
  pause_problem  text collate "C",
  seen_by        text collate "C",
  seen_at        text collate "C",
  answer         text collate "C",
  answered_by    text collate "C",
  answered_at    text collate "C",
  escalated_to   text collate "C" unique references feedback (id),
  escalated_at   text collate "C",
  closed_at      text collate "C",
  key            text collate "C" unique,
  received_at    text collate "C" not null,
  check ((seen_at is null) = (state = 'pending')),
  check (state <> 'answered' or (answer is not null and answered_at is not null)),
  check (state <> 'escalated' or escalated_to is not null),
  check ((closed_at is not null) = (state = 'closed'))
);

create index messages_by_time on messages (received_at, id);
create index messages_by_state on messages (state, received_at, id);

-- The owner of the log, the autonomy of agents, and each signed change of them.
-- `id` is the id of the log, which signed statements contain; `one` makes it the only row.
create table trust_contract (
  id           text collate "C" not null primary key,
  one          bigint not null unique check (one = 1),
  handle       text collate "C" not null check (handle <> ''),
  channel      text collate "C" not null check (channel <> ''),
  public_key   text collate "C" not null check (public_key <> ''),
  -- If the key is derived from a password: the parameters and salt of scrypt.
  phrase       text collate "C",
  persona_name text collate "C",
  tier         bigint not null check (tier between 0 and 5),
  is_dev_mode  bigint not null check (is_dev_mode in (0, 1)),
  auto_merge   text collate "C" not null,
  reviewers    text collate "C" not null,
  revision     bigint not null check (revision >= 1),
  bound_at     text collate "C" not null,
  updated_at   text collate "C" not null
);

create table trust_proposals (
  nonce       text collate "C" not null primary key,
  contract_id text collate "C" not null references trust_contract (id),
  change      text collate "C" not null check (change in ('promote', 'hand-over', 'auto-merge', 'dev-mode', 'reviewers')),
  statement   text collate "C" not null,
  proposed_by text collate "C",
  proposed_at text collate "C" not null,
  expires_at  text collate "C" not null,
  signature   text collate "C",
  applied_at  text collate "C",
  check ((signature is null) = (applied_at is null))
);

create table trust_changes (
  id          text collate "C" not null primary key,
  contract_id text collate "C" not null references trust_contract (id),
  revision    bigint not null unique check (revision >= 1),
  kind        text collate "C" not null check (kind in ('bind', 'promote', 'demote', 'hand-over', 'auto-merge', 'dev-mode', 'reviewers')),
  from_tier   bigint not null check (from_tier between 0 and 5),
  to_tier     bigint not null check (to_tier between 0 and 5),
  handle      text collate "C" not null,
  reason      text collate "C" not null,
  by          text collate "C",
  details     text collate "C" not null,
  nonce       text collate "C" unique references trust_proposals (nonce),
  at          text collate "C" not null,
  check (to_tier <= from_tier or nonce is not null)
);

-- Signatures of the owner: the statement of the exact change, and its signature. A nonce is accepted once.
create table proofs (
  nonce       text collate "C" not null primary key,
  contract_id text collate "C" not null references trust_contract (id),
  operation   text collate "C" not null check (operation <> ''),
  statement   text collate "C" not null,
  signature   text collate "C" not null check (signature <> ''),
  proved_at   text collate "C" not null
);

create index proofs_by_time on proofs (proved_at, nonce);

create table self_edits (
  id            text collate "C" not null primary key,
  pr            text collate "C" not null check (pr <> ''),
  fix_class     text collate "C" not null check (fix_class in ('prompt', 'doc', 'test', 'tool', 'policy', 'architectural', 'state-machine', 'out-of-scope')),
  files         text collate "C" not null,
  before_sha    text collate "C" not null check (before_sha <> ''),
  after_sha     text collate "C" not null check (after_sha <> ''),
  review_passes text collate "C" not null,
  confidence    bigint not null check (confidence between 0 and 100),
  em_review     text collate "C" not null check (em_review <> ''),
  auto_merged   bigint not null check (auto_merged in (0, 1)),
  feedback_id   text collate "C" references feedback (id),
  edited_at     text collate "C" not null,
  unique (pr, after_sha)
);

create index self_edits_by_time on self_edits (edited_at, id);
create index self_edits_by_feedback on self_edits (feedback_id, edited_at, id);

-- Notification rules. Only the owner writes them: a rule makes the sender run a command or call an address.
create table notify_rules (
  id         text collate "C" not null primary key,
  event      text collate "C" not null check (event in ('needs_attention', 'budget', 'failure', 'done')),
  channel    text collate "C" not null check (channel in ('command', 'webhook', 'desktop')),
  target     text collate "C" not null,
  secret_env text collate "C" check (secret_env <> ''),
  set_at     text collate "C" not null,
  proof      text collate "C"
);

-- One notice per event and rule. It is claimed before it is sent and settled afterwards. A claimed notice that was never settled
-- may have been sent, so it is not sent again automatically.
create table notices (
  id         text collate "C" not null primary key,
  rule_id    text collate "C" not null,
  key        text collate "C" not null,
  event      text collate "C" not null check (event in ('needs_attention', 'budget', 'failure', 'done')),
  what       text collate "C" not null,
  run_id     text collate "C",
  state      text collate "C" not null check (state in ('due', 'sending', 'sent', 'failed', 'unknown')),
  attempts   bigint not null check (attempts >= 0),
  due_at     text collate "C" not null,
  sender     text collate "C",
  taken_at   text collate "C",
  error      text collate "C",
  made_at    text collate "C" not null,
  settled_at text collate "C",
  unique (rule_id, key),
  check ((state = 'sending') = (sender is not null)),
  check (state <> 'sending' or taken_at is not null)
);

create index notices_open on notices (due_at, id) where state = 'due' or state = 'sending';
create index notices_by_time on notices (made_at, id);

-- The workflow: transitions, special rules, required text of prompts, and the model of each agent.
create table workflow_versions (
  id          text collate "C" not null primary key,
  number      bigint not null unique check (number >= 1),
  name        text collate "C" not null check (name <> ''),
  digest      text collate "C" not null,
  transitions bigint not null,
  aliases     bigint not null,
  rules       bigint not null,
  markers     bigint not null,
  models      bigint not null,
  loaded_by   text collate "C",
  loaded_at   text collate "C" not null
);

create table workflow_transitions (
  agent            text collate "C" not null,
  status           text collate "C" not null,
  next_agent       text collate "C",
  action           text collate "C" not null check (action in ('spawn', 'respawn', 'spawn_batch', 'spawn_merge', 'validate_then_end', 'pause_for_user', 'end_session')),
  include_context  text collate "C" not null,
  escalation_check bigint not null check (escalation_check in (0, 1)),
  model_override   text collate "C",
  fallback_agent   text collate "C",
  bypass_qa        bigint not null check (bypass_qa in (0, 1)),
  mandatory_review bigint not null check (mandatory_review in (0, 1)),
  max_parallel     bigint check (max_parallel >= 1),
  then_action      text collate "C" check (then_action in ('check_phase')),
  iteration_budget bigint check (iteration_budget >= 1),
  exhausted_status text collate "C",
  primary key (agent, status),
  check ((next_agent is null) = (action in ('validate_then_end', 'pause_for_user', 'end_session')))
);

create table workflow_aliases (
  agent  text collate "C" not null,
  status text collate "C" not null,
  means  text collate "C" not null,
  primary key (agent, status),
  foreign key (agent, means) references workflow_transitions (agent, status)
);

create table workflow_rules (
  name        text collate "C" not null primary key check (name in ('testing_mode_disabled', 'testing_mode_minimal', 'escalation_after_failures', 'security_sensitive', 'research_tasks')),
  description text collate "C" not null,
  config      text collate "C" not null
);

create table workflow_markers (
  agent    text collate "C" not null primary key,
  required text collate "C" not null,
  workflow text collate "C" not null
);

create table workflow_models (
  agent text collate "C" not null primary key,
  model text collate "C" not null check (model <> '')
);

-- Context packages: texts for other agents, their recipients, and who read them when.
-- A package belongs to a run and, unless its scope is global, to one of its groups. `number` is its short name in this log.
create table packages (
  id               text collate "C" not null primary key,
  number           bigint not null unique check (number >= 1),
  run_id           text collate "C" not null references runs (id),
  group_id         text collate "C",
  scope            text collate "C" not null check (scope in ('group', 'global')),
  package_type     text collate "C" not null check (package_type in ('research', 'failures', 'decisions', 'handoff', 'investigation')),
  priority         text collate "C" not null check (priority in ('low', 'medium', 'high', 'critical')),
  file_path        text collate "C" not null check (file_path <> ''),
  producer         text collate "C" not null check (producer in ('project_manager', 'developer', 'senior_software_engineer', 'qa_expert', 'tech_lead', 'investigator', 'requirements_engineer', 'orchestrator')),
  summary          text collate "C" not null check (length(summary) <= 200),
  size_bytes       bigint check (size_bytes >= 0),
  version          bigint not null check (version >= 1),
  supersedes_id    text collate "C" unique references packages (id),
  superseded_by_id text collate "C" unique,
  key              text collate "C",
  created_at       text collate "C" not null,
  check ((group_id is null) = (scope = 'global')),
  check ((supersedes_id is null) = (version = 1)),
  unique (run_id, key)
);

create index packages_by_run on packages (run_id, group_id, number);

-- The next number of a package; the row is locked to take one.
create table context_turn (
  one bigint not null primary key check (one = 1)
);
insert into context_turn (one) values (1);

create table context_consumers (
  package_id  text collate "C" not null references packages (id),
  agent       text collate "C" not null check (agent in ('project_manager', 'developer', 'senior_software_engineer', 'qa_expert', 'tech_lead', 'investigator', 'requirements_engineer', 'orchestrator')),
  run_id      text collate "C" not null references runs (id),
  iteration   bigint not null check (iteration >= 0),
  consumed_at text collate "C",
  primary key (package_id, agent)
);

create index context_consumers_by_agent on context_consumers (run_id, agent, package_id);

create table context_consumptions (
  id          text collate "C" not null primary key,
  scope_id    text collate "C" not null unique,
  run_id      text collate "C" not null references runs (id),
  group_id    text collate "C" not null,
  agent       text collate "C" not null check (agent in ('developer', 'qa_expert', 'tech_lead', 'senior_software_engineer', 'investigator')),
  iteration   bigint not null check (iteration >= 0),
  package_id  text collate "C" not null references packages (id),
  consumed_at text collate "C" not null,
  unique (run_id, group_id, agent, iteration, package_id)
);

create index context_consumptions_by_run on context_consumptions (run_id, consumed_at, id);

-- CI runs, so that a wait for the next one can be estimated.
create table ci_runs (
  workflow_name text collate "C" not null check (workflow_name <> ''),
  branch        text collate "C" not null check (branch <> ''),
  ci_run_id     bigint not null check (ci_run_id >= 0),
  started_at    text collate "C" not null,
  completed_at  text collate "C",
  duration_seconds bigint check (duration_seconds >= 0),
  conclusion    text collate "C" check (conclusion in ('success', 'failure', 'cancelled', 'timed_out')),
  updated_at    text collate "C" not null,
  primary key (workflow_name, branch, ci_run_id)
);

create index ci_runs_by_time on ci_runs (started_at, ci_run_id, workflow_name, branch);
create index ci_runs_by_workflow on ci_runs (workflow_name, conclusion, started_at, ci_run_id, branch);

-- Results of checks. A result counts for this tree, this definition of the check and this environment only.
create table verdicts (
  id          text collate "C" not null primary key,
  run_id      text collate "C" not null references runs (id),
  task_id     text collate "C",
  name        text collate "C" not null,
  tree        text collate "C" not null,
  definition  text collate "C" not null,
  environment text collate "C" not null,
  outcome     text collate "C" not null check (
    outcome = 'pass' or outcome = 'fail' or outcome = 'error' or outcome = 'flaky' or outcome = 'not-run'
  ),
  exit_code   bigint,
  findings    text collate "C" not null,
  artifact_id text collate "C",
  duration_ms bigint not null check (duration_ms >= 0),
  created_at  text collate "C" not null
);

create index verdicts_by_tree on verdicts (run_id, tree, created_at, id);
create index verdicts_by_run on verdicts (run_id, created_at, id);

-- Circuit breakers for shared resources, such as an account that has reached its quota or an expired login.
create table gates (
  name       text collate "C" not null primary key,
  state      text collate "C" not null check (state = 'open' or state = 'closed'),
  reason     text collate "C" not null,
  closed_at  text collate "C",
  opens_at   text collate "C",
  closings   bigint not null check (closings >= 0),
  updated_at text collate "C" not null
);

-- Results of the review gate. A result counts for this tree, this patch and these settings only.
create table reviews (
  id          text collate "C" not null primary key,
  run_id      text collate "C" not null references runs (id),
  task_id     text collate "C",
  base        text collate "C" not null,
  head        text collate "C" not null,
  tree        text collate "C" not null,
  patch       text collate "C" not null,
  settings    text collate "C" not null,
  verdict     text collate "C" not null check (
    verdict = 'pass' or verdict = 'request-changes' or verdict = 'block' or verdict = 'unproven'
  ),
  confidence  bigint check (confidence >= 0 and confidence <= 100),
  reasons     text collate "C" not null,
  passes      text collate "C" not null,
  findings    text collate "C" not null,
  feedback_id text collate "C",
  created_at  text collate "C" not null
);

create index reviews_by_tree on reviews (tree, patch, created_at, id);
create index reviews_by_run on reviews (run_id, created_at, id);

-- Results of single stages of an unfinished review, so that a killed gate continues.
create table review_passes (
  id         text collate "C" not null primary key,
  run_id     text collate "C" not null references runs (id),
  task_id    text collate "C",
  counts_for text collate "C" not null,
  number     bigint not null check (number >= 1 and number <= 7),
  result     text collate "C" not null,
  created_at text collate "C" not null
);

create index review_passes_by_what on review_passes (run_id, counts_for, created_at, id);

-- Finds reviews of earlier states of a change: those with the same base commit.
create index reviews_by_base on reviews (base, created_at, id);

-- Fixes of feedback. Each state is proven before it is stored, so a killed fix continues from it.
create table mends (
  id          text collate "C" not null primary key,
  run_id      text collate "C" not null references runs (id),
  feedback_id text collate "C" not null,
  repo        text collate "C" not null,
  state       text collate "C" not null check (
    state = 'filed' or state = 'triaged' or state = 'located' or state = 'planned' or state = 'fixing' or state = 'fixed'
    or state = 'proven' or state = 'cleared' or state = 'published' or state = 'verified' or state = 'closed' or state = 'dropped'
  ),
  waits_for   text collate "C" check (
    waits_for = 'model' or waits_for = 'approval' or waits_for = 'fix' or waits_for = 'gate' or waits_for = 'merge'
    or waits_for = 'weather' or waits_for = 'person'
  ),
  reason      text collate "C" not null,
  moves       bigint not null check (moves >= 0),
  rounds      bigint not null check (rounds >= 0),
  base        text collate "C",
  branch      text collate "C",
  head        text collate "C",
  fix_class   text collate "C",
  confidence  bigint check (confidence >= 0 and confidence <= 100),
  triage      text collate "C" not null,
  places      text collate "C" not null,
  plan        text collate "C" not null,
  findings    text collate "C" not null,
  fix_run_id  text collate "C",
  proof       text collate "C" not null,
  tests       text collate "C" not null,
  review_id   text collate "C",
  published   text collate "C" not null,
  merged      text collate "C",
  for_run_id  text collate "C",
  created_at  text collate "C" not null,
  updated_at  text collate "C" not null
);

create index mends_by_feedback on mends (feedback_id, created_at, id);

-- At most one open fix per feedback and repository, even if two processes begin one at once.
create unique index mends_open on mends (feedback_id, repo) where state <> 'closed' and state <> 'dropped';

-- Side effects of tools. The intent is written before the act and settled afterwards, so an unfinished one is known and nothing
-- is done twice.
create table effects (
  id            text collate "C" not null primary key,
  run_id        text collate "C" not null references runs (id),
  task_id       text collate "C",
  step          text collate "C" not null,
  tool          text collate "C" not null,
  key           text collate "C" not null,
  state         text collate "C" not null check (
    state = 'intended' or state = 'done' or state = 'failed' or state = 'unknown' or state = 'cleared'
  ),
  arguments     text collate "C" not null,
  facts         text collate "C" not null,
  actor         text collate "C",
  attempts      bigint not null check (attempts >= 1),
  result        text collate "C",
  result_digest text collate "C",
  error         text collate "C",
  reconciled_by text collate "C",
  note          text collate "C",
  intended_at   text collate "C" not null,
  settled_at    text collate "C",
  check ((state = 'intended') = (actor is not null)),
  check ((state = 'failed') = (error is not null))
);

create unique index effects_by_key on effects (run_id, key);
create index effects_open on effects (run_id, intended_at, id) where state = 'intended' or state = 'unknown';
create index effects_by_time on effects (intended_at, id);

-- Background processes of tools, identified beyond restarts and reused process ids.
create table processes (
  id           text collate "C" not null primary key,
  run_id       text collate "C" not null references runs (id),
  task_id      text collate "C",
  command      text collate "C" not null,
  cwd          text collate "C" not null,
  root         text collate "C" not null,
  folder       text collate "C" not null,
  sandbox      text collate "C" not null,
  state        text collate "C" not null check (
    state = 'running' or state = 'exited' or state = 'stopped' or state = 'timed_out' or state = 'lost'
  ),
  keeper       text collate "C" not null,
  pid          bigint not null,
  exit_code    bigint,
  signal       text collate "C",
  signals_sent text collate "C" not null,
  started_at   text collate "C" not null,
  ended_at     text collate "C",
  check ((state = 'running') = (ended_at is null))
);

create index processes_by_run on processes (run_id, started_at, id);
create index processes_running on processes (run_id, started_at, id) where state = 'running';

-- Which session changed which file. Contents stay in git: blobs, heads and snapshots are ids of git objects.
create table edits (
  id         text collate "C" not null primary key,
  repository text collate "C" not null check (repository <> ''),
  path       text collate "C" not null check (path <> ''),
  old_path   text collate "C",
  kind       text collate "C" not null check (kind = 'tool' or kind = 'shell' or kind = 'reconstructed' or kind = 'person'),
  session    text collate "C",
  person     text collate "C",
  run_id     text collate "C",
  task_id    text collate "C",
  call_id    text collate "C",
  mixed_with text collate "C",
  old_blob   text collate "C",
  new_blob   text collate "C",
  head       text collate "C",
  edited_at  text collate "C" not null,
  check ((kind = 'person') = (session is null)),
  check ((kind = 'person') = (person is not null)),
  check (old_blob is not null or new_blob is not null)
);

create index edits_by_path on edits (path, id);
create index edits_by_blob on edits (new_blob) where new_blob is not null;
create index edits_by_run on edits (run_id, id) where run_id is not null;

-- The files of a worktree at the start or end of a turn, as a git commit below refs/decklog/sessions.
create table worktree_snapshots (
  id         text collate "C" not null primary key,
  repository text collate "C" not null check (repository <> ''),
  worktree   text collate "C" not null,
  session    text collate "C" not null,
  moment     text collate "C" not null check (moment = 'start' or moment = 'end'),
  commit_id  text collate "C" not null,
  head       text collate "C",
  run_id     text collate "C",
  turn       text collate "C",
  skipped    text collate "C" not null,
  taken_at   text collate "C" not null
);

create index worktree_snapshots_by_session on worktree_snapshots (session, id);

-- Derived: a cache of line origins by commit. Any row may be deleted.
create table line_origins (
  repository text collate "C" not null,
  commit_id  text collate "C" not null,
  path       text collate "C" not null,
  ranges     text collate "C" not null,
  primary key (commit_id, path, repository)
);

create index line_origins_by_path on line_origins (path);

-- Derived: task counts of a run up to entry `seq`; an overview reads only later entries. The hash is that of the entry, so verify
-- can compare it. Runs with few entries have no row.
create table run_tallies (
  run_id    text collate "C" not null primary key references runs (id),
  seq       bigint not null check (seq >= 1),
  hash      text collate "C" not null,
  pending   bigint not null,
  running   bigint not null,
  waiting   bigint not null,
  blocked   bigint not null,
  paused    bigint not null,
  done      bigint not null,
  abandoned bigint not null,
  failures  bigint not null
);

-- Derived: counts of tasks, attempts and charges at regular entries `seq` of a run, and the entries that began open attempts. The
-- hash is that of the entry, so verify can compare it. The next three tables cover the entries up to the last of these rows.
-- Readers read only later entries; runs with few entries have no rows.
create table run_marks (
  run_id            text collate "C" not null references runs (id),
  seq               bigint not null check (seq >= 1),
  hash              text collate "C" not null,
  pending           bigint not null,
  running           bigint not null,
  waiting           bigint not null,
  blocked           bigint not null,
  paused            bigint not null,
  done              bigint not null,
  abandoned         bigint not null,
  failures          bigint not null,
  attempts          bigint not null,
  failed_attempts   bigint not null,
  moments           bigint not null,
  calls             bigint not null,
  tokens            bigint not null,
  cost_microdollars bigint not null,
  unpriced_calls    bigint not null,
  under_way         text collate "C" not null,
  primary key (run_id, seq)
);

create table run_attempts (
  run_id      text collate "C" not null references runs (id),
  started_seq bigint not null check (started_seq >= 1),
  task_id     text collate "C" not null,
  number      bigint not null,
  worker      text collate "C" not null,
  started_at  text collate "C" not null,
  ended_seq   bigint,
  ended_at    text collate "C",
  outcome     text collate "C",
  primary key (run_id, started_seq)
);

create index run_attempts_under_way on run_attempts (run_id) where ended_seq is null;

-- Entries that people look for: failures, questions, checkpoints, changed decisions and finished tasks.
create table run_moments (
  run_id    text collate "C" not null references runs (id),
  what      text collate "C" not null check (
    what = 'failure' or what = 'question' or what = 'checkpoint' or what = 'pivot' or what = 'ended'
  ),
  seq       bigint not null check (seq >= 1),
  record_id text collate "C",
  primary key (run_id, what, seq)
);

-- The first entry of each record: lists the records that existed at an entry, by page.
create table record_firsts (
  run_id       text collate "C" not null references runs (id),
  record_table text collate "C" not null,
  seq          bigint not null check (seq >= 1),
  record_id    text collate "C" not null,
  primary key (run_id, record_table, seq)
);

-- 0002_partitions

-- The last entry of each stream: an append reads it with the lock on the row, and heads are listed from one table.
alter table streams add column head_seq bigint not null default 0 check (head_seq >= 0 and head_seq < 4294967296);
alter table streams add column head_hash text collate "C" not null default '';
alter table streams add column head_at text collate "C" not null default '';

update streams
   set head_seq = (select max(pos) from entries where pos >= no * 4294967296 and pos < (no + 1) * 4294967296) - no * 4294967296
 where exists (select 1 from entries where pos >= no * 4294967296 and pos < (no + 1) * 4294967296);
update streams
   set head_hash = (select e.hash from entries e where e.pos = no * 4294967296 + head_seq),
       head_at = (select e.at from entries e where e.pos = no * 4294967296 + head_seq)
 where head_seq > 0;

-- Lock a stream until the transaction ends. Return its head, the newest migration that a writer must know, and whether somebody
-- listens to the stream. In PL/pgSQL each statement sees what was committed while the statement before it waited for the lock.
create or replace function lock_stream(
  p_stream varchar, out version bigint, out name varchar, out no bigint, out pos bigint, out hash varchar, out at varchar,
  out is_listened_to boolean
) language plpgsql as $$
begin
  select s.no, s.name, s.no * 4294967296 + s.head_seq, s.head_hash, s.head_at
    into no, name, pos, hash, at
    from streams s
   where s.name = p_stream
     for update;
  version := (select max(v.version) from schema_steps v where v.name not like '%_compatible');
  is_listened_to := exists (select 1 from listeners l where l.stream in (p_stream, '*') and l.until > now());
end
$$;

-- Entries and their search words are partitioned by ranges of stream numbers, so a stream and its keys are in one table. The first
-- range has all earlier entries and the reserved streams. `archive` names the file that has the entries of a detached range.
create table entry_ranges (
  first_no bigint not null primary key,
  end_no   bigint not null check (end_no > first_no),
  archive  text collate "C"
);

-- Create the tables of a range and attach them. Attaching does not block writers.
create function add_entry_range(p_first bigint, p_end bigint) returns void language plpgsql security definer as $$
declare
  leaf varchar := 'entries_' || p_first;
  text_leaf varchar := 'entry_text_' || p_first;
begin
  execute format('create table %I (like entries including defaults including constraints)', leaf);
  perform prepare_entry_range(leaf);
  execute format(
    'alter table entries attach partition %I for values from (%s) to (%s)', leaf, p_first * 4294967296, p_end * 4294967296);
  execute format('create table %I (like entry_text)', text_leaf);
  execute format(
    'alter table entry_text attach partition %I for values from (%s) to (%s)',
    text_leaf, p_first * 4294967296, p_end * 4294967296);
  insert into entry_ranges (first_no, end_no) values (p_first, p_end);
end
$$;

-- Partitions do not inherit a unique index without the position, nor a statement trigger.
create function prepare_entry_range(leaf varchar) returns void language plpgsql security definer as $$
begin
  execute format(
    'create unique index %I on %I (stream, coalesce(subtype, %L), coalesce(group_id, %L), key) where key is not null',
    leaf || '_by_key', leaf, '', '');
  execute format(
    'create trigger entries_never_go_at_once before truncate on %I for each statement execute function entries_never_go()', leaf);
end
$$;

-- Create the next range when a new stream is near the end of the last one. One transaction creates it; others wait only if their
-- stream has no range yet.
create function make_room_for_stream(p_no bigint) returns void language plpgsql security definer as $$
declare
  last entry_ranges;
  size bigint;
begin
  select * into last from entry_ranges order by first_no desc limit 1;
  size := last.end_no - last.first_no;
  if p_no < last.end_no - size / 8 - 1 then
    return;
  end if;
  if p_no < last.end_no and not pg_try_advisory_xact_lock(4919131752989214) then
    return;
  end if;
  perform pg_advisory_xact_lock(4919131752989214);
  loop
    select * into last from entry_ranges order by first_no desc limit 1;
    exit when p_no < last.end_no - size / 8 - 1;
    begin
      perform add_entry_range(last.end_no, last.end_no + size);
    exception when object_in_use then
      -- A cursor of this transaction reads entries.
      exit when p_no < last.end_no;
      raise;
    end;
  end loop;
end
$$;

do $$
declare
  boundary bigint := (
    select substring(conname from '[0-9]+$')::bigint
      from pg_constraint
     where conrelid = 'entries'::regclass and conname like 'entries\_before\_%' and convalidated
  );
  named varchar;
begin
  -- Security definer: restrict the search path to the schema of the log.
  foreach named in array array['add_entry_range(bigint, bigint)', 'prepare_entry_range(varchar)', 'make_room_for_stream(bigint)'] loop
    execute format('alter function %s set search_path = %I, pg_temp', named, current_schema());
  end loop;
  revoke execute on function add_entry_range, prepare_entry_range from public;

  lock table entry_text, entries in access exclusive mode;
  if boundary is null then
    boundary := coalesce((select max(no) + 1000000 from streams), 16);
  end if;
  alter table entries rename to entries_0;
  for named in select indexrelid::regclass from pg_index where indrelid = 'entries_0'::regclass loop
    execute format('alter index %s rename to %s', named, regexp_replace(named, 'entries_', 'entries_0_'));
  end loop;
  drop trigger entries_never_go on entries_0;
  drop trigger entries_never_change on entries_0;

  create table entries (like entries_0 including defaults) partition by range (pos);
  alter table entries add constraint entries_sound
    check (entry_is_sound(pos, seq, kind, phase, confidence, redacted, record_table, record_id));
  alter table entries add primary key (pos);
  create index entries_by_record on entries (record_table, record_id, seq) where record_table is not null;
  create index entries_by_kind on entries (kind, pos) where kind not in ('tool', 'change');
  create index entries_by_subtype on entries (subtype, pos) where subtype is not null and kind <> 'change';
  create index entries_by_agent on entries (agent, pos) where agent is not null and kind <> 'change';
  create index entries_by_phase on entries (phase, pos) where phase is not null;
  create index entries_by_group on entries (group_id, pos) where group_id is not null;
  create index entries_by_task on entries (task_id, pos) where task_id is not null and record_table is distinct from 'tasks';
  create index entries_by_time on entries (stream, at);
  create trigger entries_never_go before delete on entries for each row execute function entries_never_go();
  create trigger entries_never_change before update on entries for each row execute function entries_never_change();
  create trigger entries_never_go_at_once before truncate on entries for each statement execute function entries_never_go();

  alter table entry_text rename to entry_text_0;
  for named in select indexrelid::regclass from pg_index where indrelid = 'entry_text_0'::regclass loop
    execute format('alter index %s rename to %s', named, regexp_replace(named, 'entry_text_', 'entry_text_0_'));
  end loop;
  create table entry_text (like entry_text_0) partition by range (entry_pos);
  alter table entry_text add primary key (entry_pos);
  create index entry_text_by_word on entry_text using gin (words);

  -- The validated constraints prove that all rows are in the range, so attaching does not read them.
  execute format('alter table entries attach partition entries_0 for values from (minvalue) to (%s)', boundary * 4294967296);
  execute format('alter table entries_0 drop constraint if exists %I', 'entries_before_' || boundary);
  execute format('alter table entry_text attach partition entry_text_0 for values from (minvalue) to (%s)', boundary * 4294967296);
  execute format('alter table entry_text_0 drop constraint if exists %I', 'entry_text_before_' || boundary);
  insert into entry_ranges (first_no, end_no) values (0, boundary);
  perform add_entry_range(boundary, boundary + 1000);
  execute format('alter table streams alter column no restart with %s', boundary);
end
$$;

-- The last entry of each stream, including archived ones.
create view all_stream_heads as
select s.no, s.name, s.no * 4294967296 + s.head_seq as head_pos, s.head_seq, s.head_hash, s.head_at
  from streams s
 where s.head_seq > 0;

-- The last entry of each stream that is not archived.
create view stream_heads as
select s.*
  from all_stream_heads s
 where not exists (select 1 from entry_ranges r where r.archive is not null and s.no >= r.first_no and s.no < r.end_no);
