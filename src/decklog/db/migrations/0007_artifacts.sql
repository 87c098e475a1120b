-- Artifacts: files that a run made or used. Their bytes, when they are kept, are a blob with this digest.
create table artifacts (
  id         text not null primary key,
  run_id     text not null references runs (id),
  number     bigint not null check (number >= 1),
  task_id    text,
  role       text,
  kind       text not null,
  path       text not null,
  media_type text not null,
  digest     text check (length(digest) = 64),
  size       bigint check (size >= 0),
  redacted   bigint not null check (redacted in (0, 1)),
  metadata   text not null,
  created_at text not null,
  unique (run_id, number),
  unique (run_id, path, digest)
) strict;

create index artifacts_by_time on artifacts (created_at, run_id, number);
create index artifacts_by_digest on artifacts (digest) where digest is not null;

-- What skills gave back. `iteration` counts the outputs of one skill by one agent for one group; `number` all those of the run.
create table outputs (
  id        text not null primary key,
  run_id    text not null references runs (id),
  number    bigint not null check (number >= 1),
  skill     text not null check (skill <> ''),
  agent     text check (agent <> ''),
  group_id  text check (group_id <> ''),
  iteration bigint not null check (iteration >= 1),
  document  text,
  digest    text not null,
  redacted  bigint not null check (redacted in (0, 1)),
  key       text,
  saved_at  text not null,
  unique (run_id, number),
  unique (run_id, key)
) strict;

-- Nulls are all different to a unique index; without the coalesce, outputs of no agent could share an iteration.
create unique index outputs_by_iteration on outputs (run_id, skill, coalesce(agent, ''), coalesce(group_id, ''), iteration);
create index outputs_by_skill on outputs (run_id, skill, number);
create index outputs_by_time on outputs (run_id, saved_at);
