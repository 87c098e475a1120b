-- Tasks, the leases on them, and what they wait for. An attempt is told by the task's entries: it has no table of its own.
create table tasks (
  id                text not null primary key,
  run_id            text not null references runs (id),
  group_id          text,
  title             text not null,
  objective         text not null,
  state             text not null check (
    state = 'pending' or state = 'running' or state = 'waiting' or state = 'blocked' or state = 'paused' or state = 'done'
    or state = 'abandoned'
  ),
  priority          bigint not null check (priority between 0 and 100),
  role              text,
  tags              text not null,
  acceptance        text not null,
  verification      text not null,
  allowed_paths     text not null,
  inputs            text not null,
  not_before        text,
  open_dependencies bigint not null check (open_dependencies >= 0),
  max_attempts      bigint not null check (max_attempts >= 1),
  attempts          bigint not null check (attempts >= 0),
  failures          bigint not null check (failures >= 0),
  fence             bigint not null check (fence >= 0),
  worker            text,
  leased_at         text,
  leased_until      text,
  stage             text,
  state_name        text,
  trace_file        text,
  loop_version      bigint,
  outcome           text check (
    outcome = 'done' or outcome = 'failed' or outcome = 'expired' or outcome = 'released' or outcome = 'blocked'
    or outcome = 'paused' or outcome = 'parked' or outcome = 'abandoned'
  ),
  summary           text,
  result            text,
  reason            text,
  blocker           text,
  blocker_repeats   bigint not null check (blocker_repeats >= 0),
  snapshot          text,
  reservation_id    text,
  key               text,
  created_at        text not null,
  updated_at        text not null,
  check ((state = 'running') = (worker is not null)),
  check ((state = 'running') = (leased_until is not null))
) strict;

create index tasks_ready on tasks (run_id, priority desc, created_at, id) where state = 'pending' and open_dependencies = 0;
create index tasks_running on tasks (run_id, leased_until) where state = 'running';
create index tasks_by_creation on tasks (run_id, created_at, id);
create unique index tasks_by_key on tasks (run_id, key) where key is not null;

create table dependencies (
  run_id     text not null references runs (id),
  task_id    text not null references tasks (id),
  depends_on text not null references tasks (id),
  primary key (task_id, depends_on),
  check (task_id <> depends_on)
) strict;

create index dependencies_by_target on dependencies (depends_on, task_id);
