-- Approvals: a question about one exact thing, and the one answer it got.
-- `number` counts the approvals of a run: times can be equal, or come from elsewhere.
create table approvals (
  id              text not null primary key,
  run_id          text not null references runs (id),
  number          bigint not null check (number >= 1),
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
  unique (run_id, number),
  unique (run_id, key),
  -- Who asked never decides.
  check (lower(trim(asked_by)) <> lower(trim(decided_by))),
  -- A verdict that nobody asked for is bound to nothing, so it can't let anything pass.
  check ((asked_by is null) = (subject_digest is null) and (asked_by is null) = (question is null)),
  check (asked_by is not null or state in ('granted', 'denied')),
  check ((state = 'open') = (decided_at is null)),
  check (decided_by is null or state in ('granted', 'denied')),
  -- A question is answered by someone, or by its own default.
  check (decided_by is not null or asked_by is null or state not in ('granted', 'denied') or coalesce(default_verdict, '') = state),
  check (default_verdict is null or expires_at is not null)
) strict;

create index approvals_by_time on approvals (asked_at, run_id, number);
create index approvals_by_source on approvals (run_id, source, number) where source is not null;
create index approvals_by_digest on approvals (run_id, subject_digest) where subject_digest is not null;
create index approvals_open on approvals (run_id, expires_at) where state = 'open';
