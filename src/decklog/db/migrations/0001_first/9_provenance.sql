-- Which session changed which file. Contents stay in git: blobs, heads and snapshots are ids of git objects.
create table edits (
  id         {text} not null primary key,
  repository {text} not null check (repository <> ''),
  path       {text} not null check (path <> ''),
  old_path   {text},
  kind       {text} not null check (kind = 'tool' or kind = 'shell' or kind = 'reconstructed' or kind = 'person'),
  session    {text},
  person     {text},
  run_id     {text},
  task_id    {text},
  call_id    {text},
  mixed_with {text},
  old_blob   {text},
  new_blob   {text},
  head       {text},
  edited_at  {text} not null,
  check ((kind = 'person') = (session is null)),
  check ((kind = 'person') = (person is not null)),
  check (old_blob is not null or new_blob is not null)
){strict};

create index edits_by_path on edits (path, id);
create index edits_by_blob on edits (new_blob) where new_blob is not null;
create index edits_by_run on edits (run_id, id) where run_id is not null;

-- The files of a worktree at the start or end of a turn, as a git commit below refs/decklog/sessions.
create table worktree_snapshots (
  id         {text} not null primary key,
  repository {text} not null check (repository <> ''),
  worktree   {text} not null,
  session    {text} not null,
  moment     {text} not null check (moment = 'start' or moment = 'end'),
  commit_id  {text} not null,
  head       {text},
  run_id     {text},
  turn       {text},
  skipped    {text} not null,
  taken_at   {text} not null
){strict};

create index worktree_snapshots_by_session on worktree_snapshots (session, id);

-- Derived: a cache of line origins by commit. Any row may be deleted.
create table line_origins (
  repository {text} not null,
  commit_id  {text} not null,
  path       {text} not null,
  ranges     {text} not null,
  primary key (commit_id, path, repository)
){strict};

create index line_origins_by_path on line_origins (path);
