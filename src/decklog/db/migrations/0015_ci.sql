-- CI runs, so that a wait for the next one can be as long as such runs take.
create table ci_runs (
  workflow_name text not null check (workflow_name <> ''),
  branch        text not null check (branch <> ''),
  ci_run_id     bigint not null check (ci_run_id >= 0),
  started_at    text not null,
  completed_at  text,
  duration_s    bigint check (duration_s >= 0),
  conclusion    text check (conclusion in ('success', 'failure', 'cancelled', 'timed_out')),
  updated_at    text not null,
  primary key (workflow_name, branch, ci_run_id)
) strict;

create index ci_runs_by_time on ci_runs (started_at, ci_run_id, workflow_name, branch);
create index ci_runs_by_workflow on ci_runs (workflow_name, conclusion, started_at, ci_run_id, branch);
