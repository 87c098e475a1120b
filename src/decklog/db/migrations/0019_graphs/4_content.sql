-- What graphs of other frameworks go on from: checkpoints of their threads, what was written between them, and shared items.
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
