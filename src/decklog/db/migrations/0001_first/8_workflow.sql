-- The workflow: transitions, special rules, required text of prompts, and the model of each agent.
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

-- Context packages: texts for other agents, their recipients, and who read them when.
-- A package belongs to a run and, unless its scope is global, to one of its groups. `number` is its short name in this log.
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

-- The next number of a package; the row is locked to take one.
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

-- CI runs, so that a wait for the next one can be estimated.
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

-- Results of checks. A result counts for this tree, this definition of the check and this environment only.
create table verdicts (
  id          {text} not null primary key,
  run_id      {text} not null references runs (id),
  task_id     {text},
  name        {text} not null,
  tree        {text} not null,
  definition  {text} not null,
  environment {text} not null,
  outcome     {text} not null check (
    outcome = 'pass' or outcome = 'fail' or outcome = 'error' or outcome = 'flaky' or outcome = 'not-run'
  ),
  exit_code   {integer},
  findings    {text} not null,
  artifact_id {text},
  duration_ms {integer} not null check (duration_ms >= 0),
  created_at  {text} not null
){strict};

create index verdicts_by_tree on verdicts (run_id, tree, created_at, id);
create index verdicts_by_run on verdicts (run_id, created_at, id);

-- Circuit breakers for shared resources, such as an account that has reached its quota or an expired login.
create table gates (
  name       {text} not null primary key,
  state      {text} not null check (state = 'open' or state = 'closed'),
  reason     {text} not null,
  closed_at  {text},
  opens_at   {text},
  closings   {integer} not null check (closings >= 0),
  updated_at {text} not null
){strict};

-- Results of the review gate. A result counts for this tree, this patch and these settings only.
create table reviews (
  id          {text} not null primary key,
  run_id      {text} not null references runs (id),
  task_id     {text},
  base        {text} not null,
  head        {text} not null,
  tree        {text} not null,
  patch       {text} not null,
  settings    {text} not null,
  verdict     {text} not null check (
    verdict = 'pass' or verdict = 'request-changes' or verdict = 'block' or verdict = 'unproven'
  ),
  confidence  {integer} check (confidence >= 0 and confidence <= 100),
  reasons     {text} not null,
  passes      {text} not null,
  findings    {text} not null,
  feedback_id {text},
  created_at  {text} not null
){strict};

create index reviews_by_tree on reviews (tree, patch, created_at, id);
create index reviews_by_run on reviews (run_id, created_at, id);

-- Results of single stages of an unfinished review, so that a killed gate continues.
create table review_passes (
  id         {text} not null primary key,
  run_id     {text} not null references runs (id),
  task_id    {text},
  counts_for {text} not null,
  number     {integer} not null check (number >= 1 and number <= 7),
  result     {text} not null,
  created_at {text} not null
){strict};

create index review_passes_by_what on review_passes (run_id, counts_for, created_at, id);

-- Finds reviews of earlier states of a change: those with the same base commit.
create index reviews_by_base on reviews (base, created_at, id);

-- Fixes of feedback. Each state is proven before it is stored, so a killed fix continues from it.
create table mends (
  id          {text} not null primary key,
  run_id      {text} not null references runs (id),
  feedback_id {text} not null,
  repo        {text} not null,
  state       {text} not null check (
    state = 'filed' or state = 'triaged' or state = 'located' or state = 'planned' or state = 'fixing' or state = 'fixed'
    or state = 'proven' or state = 'cleared' or state = 'published' or state = 'verified' or state = 'closed' or state = 'dropped'
  ),
  waits_for   {text} check (
    waits_for = 'model' or waits_for = 'approval' or waits_for = 'fix' or waits_for = 'gate' or waits_for = 'merge'
    or waits_for = 'weather' or waits_for = 'person'
  ),
  reason      {text} not null,
  moves       {integer} not null check (moves >= 0),
  rounds      {integer} not null check (rounds >= 0),
  base        {text},
  branch      {text},
  head        {text},
  fix_class   {text},
  confidence  {integer} check (confidence >= 0 and confidence <= 100),
  triage      {text} not null,
  places      {text} not null,
  plan        {text} not null,
  findings    {text} not null,
  fix_run_id  {text},
  proof       {text} not null,
  tests       {text} not null,
  review_id   {text},
  published   {text} not null,
  merged      {text},
  for_run_id  {text},
  created_at  {text} not null,
  updated_at  {text} not null
){strict};

create index mends_by_feedback on mends (feedback_id, created_at, id);

-- At most one open fix per feedback and repository, even if two processes begin one at once.
create unique index mends_open on mends (feedback_id, repo) where state <> 'closed' and state <> 'dropped';
