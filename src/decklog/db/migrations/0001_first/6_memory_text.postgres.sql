-- The terms of the lessons that hold, made anew from them at any time: stems and names, the same on both engines. How often each
-- lesson has each term, and how long it is, is what BM25 needs.
create table lesson_text (
  no        bigint generated always as identity primary key,
  lesson_id {text} not null unique references lessons (id),
  topic     {text} not null,
  project   {text},
  length    integer not null
);

create table lesson_terms (
  term      {text} not null,
  lesson_no bigint not null references lesson_text (no) on delete cascade,
  times     integer not null,
  length    integer not null,
  primary key (term, lesson_no) include (times, length)
);
create index lesson_terms_by_lesson on lesson_terms (lesson_no);

-- An array, so that the log needs no extension; where pgvector is installed, it compares them.
create table lesson_vectors (
  lesson_id  {text} not null references lessons (id),
  embedder   {text} not null,
  dimensions {integer} not null check (dimensions > 0),
  vector     real[] not null check (cardinality(vector) = dimensions),
  primary key (embedder, lesson_id)
);
