-- State documents: the current version of each, and all earlier versions. The documents are blobs.
create table states (
  run_id     {text} not null references runs (id),
  group_id   {text} not null,
  name       {text} not null,
  version    {integer} not null check (version >= 1),
  digest     {text} not null,
  iteration  {integer} check (iteration >= 1),
  updated_at {text} not null,
  primary key (run_id, group_id, name),
  check (name <> 'investigation' or lower(group_id) <> 'global')
){strict};

create table state_versions (
  run_id    {text} not null,
  group_id  {text} not null,
  name      {text} not null,
  version   {integer} not null check (version >= 1),
  digest    {text} not null,
  redacted  {integer} not null check (redacted in (0, 1)),
  iteration {integer} check (iteration >= 1),
  agent     {text},
  saved_at  {text} not null,
  primary key (run_id, group_id, name, version),
  foreign key (run_id, group_id, name) references states (run_id, group_id, name)
){strict};

-- Checkpoints of a run, at entry `seq` of its stream. A large payload is a blob.
create table checkpoints (
  id         {text} not null primary key,
  run_id     {text} not null references runs (id),
  number     {integer} not null check (number >= 1),
  seq        {integer} not null check (seq >= 1),
  name       {text},
  status     {text},
  payload    {text},
  digest     {text} not null,
  redacted   {integer} not null check (redacted in (0, 1)),
  key        {text},
  created_at {text} not null,
  unique (run_id, number),
  unique (run_id, key)
){strict};

-- What a paused task needs to continue; `pauses` counts the pauses.
create table snapshots (
  run_id    {text} not null references runs (id),
  task_id   {text} not null check (task_id <> ''),
  paused_at {text} not null,
  reason    {text} not null,
  pauses    {integer} not null check (pauses >= 1),
  digest    {text} not null,
  redacted  {integer} not null check (redacted in (0, 1)),
  saved_at  {text} not null,
  primary key (run_id, task_id)
){strict};

create index snapshots_by_task on snapshots (task_id);

-- Files that a run created or used. Their bytes, if stored, are a blob with this digest.
create table artifacts (
  id         {text} not null primary key,
  run_id     {text} not null references runs (id),
  number     {integer} not null check (number >= 1),
  task_id    {text},
  role       {text},
  kind       {text} not null,
  path       {text} not null,
  media_type {text} not null,
  digest     {text} check (length(digest) = 64),
  size       {integer} check (size >= 0),
  redacted   {integer} not null check (redacted in (0, 1)),
  metadata   {text} not null,
  created_at {text} not null,
  unique (run_id, number),
  unique (run_id, path, digest)
){strict};

create index artifacts_by_time on artifacts (created_at, run_id, number);
create index artifacts_by_digest on artifacts (digest) where digest is not null;

-- Outputs of skills. `iteration` counts the outputs of one skill by one agent for one group; `number` counts all of the run.
create table outputs (
  id        {text} not null primary key,
  run_id    {text} not null references runs (id),
  number    {integer} not null check (number >= 1),
  skill     {text} not null check (skill <> ''),
  agent     {text} check (agent <> ''),
  group_id  {text} check (group_id <> ''),
  iteration {integer} not null check (iteration >= 1),
  document  {text},
  digest    {text} not null,
  redacted  {integer} not null check (redacted in (0, 1)),
  key       {text},
  saved_at  {text} not null,
  unique (run_id, number),
  unique (run_id, key)
){strict};

-- Nulls are distinct in a unique index: without coalesce, outputs without an agent could share an iteration.
create unique index outputs_by_iteration on outputs (run_id, skill, coalesce(agent, ''), coalesce(group_id, ''), iteration);
create index outputs_by_skill on outputs (run_id, skill, number);
create index outputs_by_time on outputs (run_id, saved_at);

-- State of LangGraph's graphs: checkpoints of threads, pending writes, and items of its store.
create table graph_checkpoints (
  run_id        {text} not null references runs (id),
  namespace     {text} not null,
  checkpoint_id {text} not null,
  thread_id     {text} not null,
  parent_id     {text},
  encoding      {text} not null,
  digest        {text} not null,
  metadata      {text} not null,
  graph_run_id  {text},
  redacted      {integer} not null check (redacted = 0 or redacted = 1),
  saved_at      {text} not null,
  primary key (run_id, namespace, checkpoint_id)
){strict};

create index graph_checkpoints_by_id on graph_checkpoints (checkpoint_id);
create index graph_checkpoints_by_graph_run on graph_checkpoints (graph_run_id) where graph_run_id is not null;

create table graph_writes (
  run_id        {text} not null references runs (id),
  namespace     {text} not null,
  checkpoint_id {text} not null,
  task_id       {text} not null,
  number        {integer} not null,
  task_path     {text} not null,
  channel       {text} not null,
  encoding      {text} not null,
  digest        {text} not null,
  redacted      {integer} not null check (redacted = 0 or redacted = 1),
  saved_at      {text} not null,
  primary key (run_id, namespace, checkpoint_id, task_id, number)
){strict};

create table graph_items (
  namespace   {text} not null,
  key         {text} not null,
  value       {text} not null,
  created_at  {text} not null,
  updated_at  {text} not null,
  indexed     {text},
  ttl_seconds {real},
  expires_at  {text},
  primary key (namespace, key)
){strict};

create index graph_items_by_expiry on graph_items (expires_at) where expires_at is not null;
