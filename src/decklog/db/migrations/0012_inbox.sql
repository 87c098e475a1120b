-- Messages from people, and the feedback some of them become.
create table feedback (
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

create index feedback_by_time on feedback (received_at, id);
create index feedback_by_state on feedback (state, received_at, id);
create index feedback_by_class on feedback (fix_class, received_at, id);

-- Whom a message is for: `agent`, `run_id` and `task_id` narrow it, and none of them means everybody.
create table messages (
  id             text not null primary key,
  from_handle    text not null check (from_handle <> ''),
  is_authorised  bigint not null check (is_authorised in (0, 1)),
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

create index messages_by_time on messages (received_at, id);
create index messages_by_state on messages (state, received_at, id);
