-- The workflow: who comes next after each report, the rules that bend it, what prompts must say, and which model each agent gets.
create table workflow_versions (
  id          text not null primary key,
  number      bigint not null unique check (number >= 1),
  name        text not null check (name <> ''),
  digest      text not null,
  transitions bigint not null,
  aliases     bigint not null,
  rules       bigint not null,
  markers     bigint not null,
  models      bigint not null,
  loaded_by   text,
  loaded_at   text not null
) strict;

create table workflow_transitions (
  agent            text not null,
  status           text not null,
  next_agent       text,
  action           text not null check (action in ('spawn', 'respawn', 'spawn_batch', 'spawn_merge', 'validate_then_end', 'pause_for_user', 'end_session')),
  include_context  text not null,
  escalation_check bigint not null check (escalation_check in (0, 1)),
  model_override   text,
  fallback_agent   text,
  bypass_qa        bigint not null check (bypass_qa in (0, 1)),
  mandatory_review bigint not null check (mandatory_review in (0, 1)),
  max_parallel     bigint check (max_parallel >= 1),
  then_action      text check (then_action in ('check_phase')),
  iteration_budget bigint check (iteration_budget >= 1),
  exhausted_status text,
  primary key (agent, status),
  check ((next_agent is null) = (action in ('validate_then_end', 'pause_for_user', 'end_session')))
) strict;

create table workflow_aliases (
  agent  text not null,
  status text not null,
  means  text not null,
  primary key (agent, status),
  foreign key (agent, means) references workflow_transitions (agent, status)
) strict;

create table workflow_rules (
  name        text not null primary key check (name in ('testing_mode_disabled', 'testing_mode_minimal', 'escalation_after_failures', 'security_sensitive', 'research_tasks')),
  description text not null,
  config      text not null
) strict;

create table workflow_markers (
  agent    text not null primary key,
  required text not null,
  workflow text not null
) strict;

create table workflow_models (
  agent text not null primary key,
  model text not null check (model <> '')
) strict;
