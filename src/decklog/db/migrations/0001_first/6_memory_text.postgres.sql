-- The words of the lessons that hold, made anew from them at any time.
create table lesson_text (
  lesson_id {text} not null primary key references lessons (id),
  topic     {text} not null,
  project   {text},
  words     tsvector not null
);

create index lesson_text_by_word on lesson_text using gin (words);

-- An array, so that the log needs no extension; where pgvector is installed, it compares them.
create table lesson_vectors (
  lesson_id  {text} not null references lessons (id),
  embedder   {text} not null,
  dimensions {integer} not null check (dimensions > 0),
  vector     real[] not null check (cardinality(vector) = dimensions),
  primary key (embedder, lesson_id)
);
