-- The plan of a run, its phases as rows of their own, and what must be true for the run to be a success.
create table plans (
  run_id           text not null primary key references runs (id),
  original_prompt  text not null,
  plan_text        text not null,
  current_phase    bigint check (current_phase >= 0),
  total_phases     bigint not null check (total_phases >= 0),
  metadata         text,
  created_at       text not null,
  updated_at       text not null
) strict;

create table phases (
  run_id           text not null references plans (run_id),
  number           bigint not null check (number >= 0),
  name             text not null,
  status           text not null check (status in ('pending', 'in_progress', 'completed', 'blocked')),
  progress_percent bigint not null check (progress_percent between 0 and 100),
  started_at       text,
  completed_at     text,
  extra            text not null,
  updated_at       text not null,
  primary key (run_id, number),
  check (completed_at is null or status = 'completed')
) strict;

create table criteria (
  run_id           text not null references runs (id),
  number           bigint not null check (number >= 1),
  criterion        text not null,
  status           text not null check (status in ('pending', 'met', 'blocked', 'failed')),
  actual           text,
  evidence         text,
  required         bigint not null check (required in (0, 1)),
  evidence_commit  text,
  evidence_files   text,
  is_stale         bigint not null check (is_stale in (0, 1)),
  stale_reason     text,
  created_at       text not null,
  updated_at       text not null,
  primary key (run_id, number),
  unique (run_id, criterion),
  check ((is_stale = 1) = (stale_reason is not null)),
  check (status = 'met' or (is_stale = 0 and evidence_commit is null and evidence_files is null))
) strict;
