-- Derived: the terms (stems and names) of valid lessons, with the counts and lengths that BM25 needs.
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

-- An array, so that the log needs no extension. If pgvector is installed, it compares the vectors.
create table lesson_vectors (
  lesson_id  {text} not null references lessons (id),
  embedder   {text} not null,
  dimensions {integer} not null check (dimensions > 0),
  vector     real[] not null check (cardinality(vector) = dimensions),
  primary key (embedder, lesson_id)
);
