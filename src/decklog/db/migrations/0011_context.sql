-- Context packages: what one agent leaves for others to read, who they are, and who read it when.
-- A package belongs to a run and, unless its scope is global, to a group of it. `number` is its short name in this log.
create table context_packages (
  id               text not null primary key,
  number           bigint not null unique check (number >= 1),
  run_id           text not null references runs (id),
  group_id         text,
  scope            text not null check (scope in ('group', 'global')),
  package_type     text not null check (package_type in ('research', 'failures', 'decisions', 'handoff', 'investigation')),
  priority         text not null check (priority in ('low', 'medium', 'high', 'critical')),
  file_path        text not null check (file_path <> ''),
  producer         text not null check (producer in ('project_manager', 'developer', 'senior_software_engineer', 'qa_expert', 'tech_lead', 'investigator', 'requirements_engineer', 'orchestrator')),
  summary          text not null check (length(summary) <= 200),
  size_bytes       bigint check (size_bytes >= 0),
  version          bigint not null check (version >= 1),
  supersedes_id    text unique references context_packages (id),
  superseded_by_id text unique,
  key              text,
  created_at       text not null,
  check ((group_id is null) = (scope = 'global')),
  check ((supersedes_id is null) = (version = 1)),
  unique (run_id, key)
) strict;

create index context_packages_by_run on context_packages (run_id, group_id, number);

-- Numbers are given out one at a time: whoever holds this row gives the next one.
create table context_turn (
  one bigint not null primary key check (one = 1)
) strict;
insert into context_turn (one) values (1);

create table context_consumers (
  package_id  text not null references context_packages (id),
  agent       text not null check (agent in ('project_manager', 'developer', 'senior_software_engineer', 'qa_expert', 'tech_lead', 'investigator', 'requirements_engineer', 'orchestrator')),
  run_id      text not null references runs (id),
  iteration   bigint not null check (iteration >= 0),
  consumed_at text,
  primary key (package_id, agent)
) strict;

create index context_consumers_by_agent on context_consumers (run_id, agent, package_id);

create table context_consumptions (
  id          text not null primary key,
  scope_id    text not null unique,
  run_id      text not null references runs (id),
  group_id    text not null,
  agent       text not null check (agent in ('developer', 'qa_expert', 'tech_lead', 'senior_software_engineer', 'investigator')),
  iteration   bigint not null check (iteration >= 0),
  package_id  text not null references context_packages (id),
  consumed_at text not null,
  unique (run_id, group_id, agent, iteration, package_id)
) strict;

create index context_consumptions_by_run on context_consumptions (run_id, consumed_at, id);
