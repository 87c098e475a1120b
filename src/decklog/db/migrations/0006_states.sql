-- State documents: the present version of each, and every version it ever had. The documents themselves are blobs.
create table states (
  run_id     text not null references runs (id),
  group_id   text not null,
  name       text not null,
  version    bigint not null check (version >= 1),
  digest     text not null,
  iteration  bigint check (iteration >= 1),
  updated_at text not null,
  primary key (run_id, group_id, name),
  check (name <> 'investigation' or lower(group_id) <> 'global')
) strict;

create table state_versions (
  run_id    text not null,
  group_id  text not null,
  name      text not null,
  version   bigint not null check (version >= 1),
  digest    text not null,
  redacted  bigint not null check (redacted in (0, 1)),
  iteration bigint check (iteration >= 1),
  agent     text,
  saved_at  text not null,
  primary key (run_id, group_id, name, version),
  foreign key (run_id, group_id, name) references states (run_id, group_id, name)
) strict;

-- A checkpoint says where a run stood: at entry `seq` of its stream. A payload too long for a row is a blob.
create table checkpoints (
  id         text not null primary key,
  run_id     text not null references runs (id),
  number     bigint not null check (number >= 1),
  seq        bigint not null check (seq >= 1),
  name       text,
  status     text,
  payload    text,
  digest     text not null,
  redacted   bigint not null check (redacted in (0, 1)),
  key        text,
  created_at text not null,
  unique (run_id, number),
  unique (run_id, key)
) strict;

-- What a task that was set aside needs to go on; `pauses` counts how often that happened.
create table snapshots (
  run_id    text not null references runs (id),
  task_id   text not null check (task_id <> ''),
  paused_at text not null,
  reason    text not null,
  pauses    bigint not null check (pauses >= 1),
  digest    text not null,
  redacted  bigint not null check (redacted in (0, 1)),
  saved_at  text not null,
  primary key (run_id, task_id)
) strict;

create index snapshots_by_task on snapshots (task_id);
