-- Background processes that tools started: enough to find one again after a restart, and never to take a stranger for it.
create table processes (
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
  pid          bigint not null,
  exit_code    bigint,
  signal       text,
  signals_sent text not null,
  started_at   text not null,
  ended_at     text,
  check ((state = 'running') = (ended_at is null))
) strict;

create index processes_by_run on processes (run_id, started_at, id);
create index processes_running on processes (run_id, started_at, id) where state = 'running';
