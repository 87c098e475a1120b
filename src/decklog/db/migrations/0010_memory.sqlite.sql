-- What was learned: lessons by topic with the sightings behind them, error patterns, strategies and learnings.
create table topics (
  name        text not null primary key,
  description text not null,
  created_at  text not null
) strict;

create table lessons (
  id               text not null primary key,
  topic            text not null,
  project          text,
  body             text not null,
  fingerprint      text not null,
  payload          text not null,
  confidence       bigint not null check (confidence between 0 and 100),
  source_kind      text not null,
  source_id        text,
  run_id           text references runs (id),
  task_id          text,
  sightings        bigint not null check (sightings >= 1),
  recall_count     bigint not null check (recall_count >= 0),
  useful_count     bigint not null check (useful_count >= 0),
  harmful_count    bigint not null check (harmful_count >= 0),
  superseded_by    text references lessons (id) check (superseded_by <> id),
  created_at       text not null,
  last_seen_at     text not null,
  last_recalled_at text
) strict;

create index lessons_by_fingerprint on lessons (fingerprint);
create index lessons_by_topic on lessons (topic, created_at, id);
create index lessons_by_creation on lessons (created_at, id);
create index lessons_by_recall on lessons (last_recalled_at);
create index lessons_by_successor on lessons (superseded_by) where superseded_by is not null;

create table sightings (
  id          text not null primary key,
  lesson_id   text not null references lessons (id),
  body        text,
  source_kind text not null,
  source_id   text,
  run_id      text references runs (id),
  task_id     text,
  refs        text not null,
  key         text unique,
  seen_at     text not null
) strict;

create index sightings_by_lesson on sightings (lesson_id, seen_at, id);

create table error_patterns (
  pattern_hash text not null,
  project      text not null,
  signature    text not null,
  solution     text not null,
  confidence   double precision not null check (confidence >= 0 and confidence <= 1),
  occurrences  bigint not null check (occurrences >= 1),
  lang         text,
  ttl_days     bigint not null check (ttl_days > 0),
  created_at   text not null,
  last_seen_at text not null,
  primary key (pattern_hash, project)
) strict;

create index error_patterns_by_project on error_patterns (project, lang);
create index error_patterns_by_age on error_patterns (ttl_days, last_seen_at);

create table strategies (
  id           text not null primary key,
  project      text not null,
  topic        text not null check (topic in ('implementation', 'architecture', 'methodology', 'general')),
  insight      text not null,
  helpfulness  bigint not null check (helpfulness >= 0),
  lang         text,
  framework    text,
  refs         text not null,
  created_at   text not null,
  last_seen_at text not null
) strict;

create index strategies_by_project on strategies (project, helpfulness, last_seen_at);

create table learnings (
  id          text not null primary key,
  task_id     text not null,
  observation text not null,
  candidate   text not null,
  state       text not null check (state in ('open', 'promoted', 'dismissed')),
  noted_at    text not null,
  run_id      text references runs (id),
  key         text unique,
  decided_at  text,
  decided_by  text,
  reason      text,
  check ((decided_at is null) = (state = 'open'))
) strict;

create index learnings_by_state on learnings (state, noted_at, id);
create index learnings_by_time on learnings (noted_at, id);

-- One row, held by whoever adds a lesson: two who learn the same thing at the same time must see each other.
create table lesson_desk (
  id bigint not null primary key check (id = 1)
) strict;
insert into lesson_desk (id) values (1);

-- The words of the lessons that hold, made anew from them at any time. The index wants whole numbers for its rows, and the rows of
-- `lessons` have none that a vacuum keeps.
create table lesson_places (
  no        integer primary key,
  lesson_id text not null unique references lessons (id)
) strict;

create virtual table lesson_text using fts5(
  words, senses, tags,
  content = '', contentless_delete = 1, tokenize = 'porter unicode61'
);
insert into lesson_text (lesson_text, rank) values ('rank', 'bm25(1.0, 4.0, 0.0)');
create virtual table lesson_words using fts5vocab(lesson_text, 'row');

-- 32-bit floats, little end first.
create table lesson_vectors (
  lesson_id  text not null references lessons (id),
  embedder   text not null,
  dimensions integer not null check (dimensions > 0),
  vector     blob not null check (length(vector) = 4 * dimensions),
  primary key (embedder, lesson_id)
) strict, without rowid;
