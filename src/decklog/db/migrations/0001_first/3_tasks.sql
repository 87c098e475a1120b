-- Task groups of a run, ordered by `number`.
create table groups (
  run_id                {text} not null references runs (id),
  group_id              {text} not null check (length(group_id) between 1 and 64),
  number                {integer} not null check (number >= 1),
  name                  {text} not null,
  status                {text} not null
    check (status in ('pending', 'in_progress', 'completed', 'failed', 'approved_pending_merge', 'merging')),
  assigned_to           {text},
  revision_count        {integer} not null check (revision_count >= 0),
  last_review_status    {text} check (last_review_status in ('APPROVED', 'CHANGES_REQUESTED')),
  feature_branch        {text},
  merge_status          {text} check (merge_status in ('pending', 'in_progress', 'merged', 'conflict', 'test_failure')),
  complexity            {integer} check (complexity between 1 and 10),
  initial_tier          {text} not null check (initial_tier in ('Developer', 'Senior Software Engineer')),
  context_references    {text},
  specializations       {text},
  item_count            {integer} not null check (item_count >= 1),
  security_sensitive    {integer} not null check (security_sensitive in (0, 1)),
  qa_attempts           {integer} not null check (qa_attempts >= 0),
  tl_review_attempts    {integer} not null check (tl_review_attempts >= 0),
  component_path        {text},
  review_iteration      {integer} not null check (review_iteration >= 1),
  no_progress_count     {integer} not null check (no_progress_count >= 0),
  blocking_issues_count {integer} not null check (blocking_issues_count >= 0),
  speckit_task_ids      {text},
  created_at            {text} not null,
  updated_at            {text} not null,
  primary key (run_id, group_id),
  unique (run_id, number)
){strict};

create index groups_by_status on groups (status, run_id, number);

-- The plan of a run, its phases, and its success criteria.
create table plans (
  run_id           {text} not null primary key references runs (id),
  original_prompt  {text} not null,
  plan_text        {text} not null,
  current_phase    {integer} check (current_phase >= 0),
  total_phases     {integer} not null check (total_phases >= 0),
  metadata         {text},
  created_at       {text} not null,
  updated_at       {text} not null
){strict};

create table phases (
  run_id           {text} not null references plans (run_id),
  number           {integer} not null check (number >= 0),
  name             {text} not null,
  status           {text} not null check (status in ('pending', 'in_progress', 'completed', 'blocked')),
  progress_percent {integer} not null check (progress_percent between 0 and 100),
  started_at       {text},
  completed_at     {text},
  extra            {text} not null,
  updated_at       {text} not null,
  primary key (run_id, number),
  check (completed_at is null or status = 'completed')
){strict};

create table criteria (
  run_id           {text} not null references runs (id),
  number           {integer} not null check (number >= 1),
  criterion        {text} not null,
  status           {text} not null check (status in ('pending', 'met', 'blocked', 'failed')),
  actual           {text},
  evidence         {text},
  required         {integer} not null check (required in (0, 1)),
  evidence_commit  {text},
  evidence_files   {text},
  is_stale         {integer} not null check (is_stale in (0, 1)),
  stale_reason     {text},
  created_at       {text} not null,
  updated_at       {text} not null,
  primary key (run_id, number),
  unique (run_id, criterion),
  check ((is_stale = 1) = (stale_reason is not null)),
  check (status = 'met' or (is_stale = 0 and evidence_commit is null and evidence_files is null))
){strict};

create index criteria_stale on criteria (run_id, number) where is_stale = 1;

-- Tasks, their leases and dependencies. Attempts have no table: they are read from the task's entries.
create table tasks (
  id                {text} not null primary key,
  run_id            {text} not null references runs (id),
  group_id          {text},
  title             {text} not null,
  objective         {text} not null,
  state             {text} not null check (
    state = 'pending' or state = 'running' or state = 'waiting' or state = 'blocked' or state = 'paused' or state = 'done'
    or state = 'abandoned'
  ),
  priority          {integer} not null check (priority between 0 and 100),
  role              {text},
  tags              {text} not null,
  acceptance        {text} not null,
  verification      {text} not null,
  allowed_paths     {text} not null,
  inputs            {text} not null,
  not_before        {text},
  open_dependencies {integer} not null check (open_dependencies >= 0),
  max_attempts      {integer} not null check (max_attempts >= 1),
  attempts          {integer} not null check (attempts >= 0),
  failures          {integer} not null check (failures >= 0),
  fence             {integer} not null check (fence >= 0),
  worker            {text},
  leased_at         {text},
  leased_until      {text},
  stage             {text},
  state_name        {text},
  trace_file        {text},
  loop_version      {integer},
  outcome           {text} check (
    outcome = 'done' or outcome = 'failed' or outcome = 'expired' or outcome = 'released' or outcome = 'blocked'
    or outcome = 'paused' or outcome = 'parked' or outcome = 'abandoned'
  ),
  summary           {text},
  result            {text},
  reason            {text},
  blocker           {text},
  blocker_repeats   {integer} not null check (blocker_repeats >= 0),
  snapshot          {text},
  reservation_id    {text},
  key               {text},
  created_at        {text} not null,
  updated_at        {text} not null,
  assigned_to       {text},
  check ((state = 'running') = (worker is not null)),
  check ((state = 'running') = (leased_until is not null))
){strict};

create index tasks_running on tasks (run_id, leased_until) where state = 'running';
create index tasks_by_creation on tasks (run_id, created_at, id);
create unique index tasks_by_key on tasks (run_id, key) where key is not null;
-- A task with an assignee is given to that worker only. The state is not in this index, so claims do not write it.
create index tasks_assigned on tasks (run_id, assigned_to) where assigned_to is not null;
create index tasks_blocked on tasks (updated_at, id) where state = 'blocked';
create index tasks_held on tasks (run_id, priority desc, created_at, id)
  where state = 'blocked' or state = 'waiting' or state = 'paused';
create index tasks_dependent on tasks (run_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies > 0;
create index tasks_waiting on tasks (updated_at, id) where state = 'waiting';
create index tasks_paused on tasks (updated_at, id) where state = 'paused';
-- Ready tasks in the order of claims, by assignee; '' is anybody. A claim compares the first task of its worker with the
-- first task of anybody.
create index tasks_ready on tasks (run_id, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0;
create index tasks_ready_by_group on tasks (run_id, group_id, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and group_id is not null;
create index tasks_ready_by_role on tasks (run_id, role, coalesce(assigned_to, ''), priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and role is not null;
-- All ready tasks of a run in order, for lists.
create index tasks_ready_assigned on tasks (run_id, priority desc, created_at, id)
  where state = 'pending' and open_dependencies = 0 and assigned_to is not null;

-- Links between tasks. Only `blocks` delays a task; a `parent` is complete when its children are.
create table dependencies (
  run_id     {text} not null references runs (id),
  task_id    {text} not null references tasks (id),
  depends_on {text} not null references tasks (id),
  kind       {text} not null default 'blocks'
    check (kind = 'blocks' or kind = 'parent' or kind = 'related' or kind = 'discovered-from'),
  primary key (task_id, depends_on),
  check (task_id <> depends_on)
){strict};

create index dependencies_by_target on dependencies (depends_on, task_id);
create unique index dependencies_one_parent on dependencies (task_id) where kind = 'parent';

create table task_comments (
  id         {text} not null primary key,
  run_id     {text} not null references runs (id),
  task_id    {text} not null references tasks (id),
  author     {text} not null,
  body       {text} not null,
  created_at {text} not null
){strict};

create index task_comments_by_task on task_comments (task_id, created_at, id);

-- Reusable sets of tasks. A version is never changed, so created tasks can be traced to it.
create table templates (
  name        {text} not null,
  version     {integer} not null check (version >= 1),
  description {text} not null,
  tasks       {text} not null,
  created_at  {text} not null,
  primary key (name, version)
){strict};

-- Recurring tasks of a run. From `next_at` on, a claim or an overview creates the tasks; it is null while paused.
create table schedules (
  id              {text} not null primary key,
  run_id          {text} not null references runs (id),
  name            {text} not null,
  rule            {text} not null,
  zone            {text} not null,
  catch_up        {text} not null check (catch_up = 'none' or catch_up = 'one' or catch_up = 'all'),
  catch_up_limit  {integer} not null check (catch_up_limit between 1 and 100),
  late_seconds    {integer} not null check (late_seconds >= 0),
  task            {text},
  template        {text},
  template_values {text} not null,
  next_at         {text},
  last_at         {text},
  occurrences     {integer} not null check (occurrences >= 0),
  reason          {text},
  created_at      {text} not null,
  updated_at      {text} not null,
  unique (run_id, name),
  check ((task is null) <> (template is null))
){strict};

create index schedules_due on schedules (run_id, next_at) where next_at is not null;
