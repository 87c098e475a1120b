-- The workflow: who comes next after each report, the rules that bend it, what prompts must say, and which model each agent gets.
create table workflow_versions (
  id          {text} not null primary key,
  number      {integer} not null unique check (number >= 1),
  name        {text} not null check (name <> ''),
  digest      {text} not null,
  transitions {integer} not null,
  aliases     {integer} not null,
  rules       {integer} not null,
  markers     {integer} not null,
  models      {integer} not null,
  loaded_by   {text},
  loaded_at   {text} not null
){strict};

create table workflow_transitions (
  agent            {text} not null,
  status           {text} not null,
  next_agent       {text},
  action           {text} not null check (action in ('spawn', 'respawn', 'spawn_batch', 'spawn_merge', 'validate_then_end', 'pause_for_user', 'end_session')),
  include_context  {text} not null,
  escalation_check {integer} not null check (escalation_check in (0, 1)),
  model_override   {text},
  fallback_agent   {text},
  bypass_qa        {integer} not null check (bypass_qa in (0, 1)),
  mandatory_review {integer} not null check (mandatory_review in (0, 1)),
  max_parallel     {integer} check (max_parallel >= 1),
  then_action      {text} check (then_action in ('check_phase')),
  iteration_budget {integer} check (iteration_budget >= 1),
  exhausted_status {text},
  primary key (agent, status),
  check ((next_agent is null) = (action in ('validate_then_end', 'pause_for_user', 'end_session')))
){strict};

create table workflow_aliases (
  agent  {text} not null,
  status {text} not null,
  means  {text} not null,
  primary key (agent, status),
  foreign key (agent, means) references workflow_transitions (agent, status)
){strict};

create table workflow_rules (
  name        {text} not null primary key check (name in ('testing_mode_disabled', 'testing_mode_minimal', 'escalation_after_failures', 'security_sensitive', 'research_tasks')),
  description {text} not null,
  config      {text} not null
){strict};

create table workflow_markers (
  agent    {text} not null primary key,
  required {text} not null,
  workflow {text} not null
){strict};

create table workflow_models (
  agent {text} not null primary key,
  model {text} not null check (model <> '')
){strict};

-- Context packages: what one agent leaves for others to read, who they are, and who read it when.
-- A package belongs to a run and, unless its scope is global, to a group of it. `number` is its short name in this log.
create table packages (
  id               {text} not null primary key,
  number           {integer} not null unique check (number >= 1),
  run_id           {text} not null references runs (id),
  group_id         {text},
  scope            {text} not null check (scope in ('group', 'global')),
  package_type     {text} not null check (package_type in ('research', 'failures', 'decisions', 'handoff', 'investigation')),
  priority         {text} not null check (priority in ('low', 'medium', 'high', 'critical')),
  file_path        {text} not null check (file_path <> ''),
  producer         {text} not null check (producer in ('project_manager', 'developer', 'senior_software_engineer', 'qa_expert', 'tech_lead', 'investigator', 'requirements_engineer', 'orchestrator')),
  summary          {text} not null check (length(summary) <= 200),
  size_bytes       {integer} check (size_bytes >= 0),
  version          {integer} not null check (version >= 1),
  supersedes_id    {text} unique references packages (id),
  superseded_by_id {text} unique,
  key              {text},
  created_at       {text} not null,
  check ((group_id is null) = (scope = 'global')),
  check ((supersedes_id is null) = (version = 1)),
  unique (run_id, key)
){strict};

create index packages_by_run on packages (run_id, group_id, number);

-- Numbers are given out one at a time: whoever holds this row gives the next one.
create table context_turn (
  one {integer} not null primary key check (one = 1)
){strict};
insert into context_turn (one) values (1);

create table context_consumers (
  package_id  {text} not null references packages (id),
  agent       {text} not null check (agent in ('project_manager', 'developer', 'senior_software_engineer', 'qa_expert', 'tech_lead', 'investigator', 'requirements_engineer', 'orchestrator')),
  run_id      {text} not null references runs (id),
  iteration   {integer} not null check (iteration >= 0),
  consumed_at {text},
  primary key (package_id, agent)
){strict};

create index context_consumers_by_agent on context_consumers (run_id, agent, package_id);

create table context_consumptions (
  id          {text} not null primary key,
  scope_id    {text} not null unique,
  run_id      {text} not null references runs (id),
  group_id    {text} not null,
  agent       {text} not null check (agent in ('developer', 'qa_expert', 'tech_lead', 'senior_software_engineer', 'investigator')),
  iteration   {integer} not null check (iteration >= 0),
  package_id  {text} not null references packages (id),
  consumed_at {text} not null,
  unique (run_id, group_id, agent, iteration, package_id)
){strict};

create index context_consumptions_by_run on context_consumptions (run_id, consumed_at, id);

-- CI runs, so that a wait for the next one can be as long as such runs take.
create table ci_runs (
  workflow_name {text} not null check (workflow_name <> ''),
  branch        {text} not null check (branch <> ''),
  ci_run_id     {integer} not null check (ci_run_id >= 0),
  started_at    {text} not null,
  completed_at  {text},
  duration_seconds {integer} check (duration_seconds >= 0),
  conclusion    {text} check (conclusion in ('success', 'failure', 'cancelled', 'timed_out')),
  updated_at    {text} not null,
  primary key (workflow_name, branch, ci_run_id)
){strict};

create index ci_runs_by_time on ci_runs (started_at, ci_run_id, workflow_name, branch);
create index ci_runs_by_workflow on ci_runs (workflow_name, conclusion, started_at, ci_run_id, branch);
