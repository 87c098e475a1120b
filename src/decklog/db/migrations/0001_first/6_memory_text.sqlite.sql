-- Derived: the terms (stems and names) of valid lessons, separated by blanks. FTS5 needs integer row ids, and a vacuum changes
-- those of `lessons`.
create table lesson_places (
  no        integer primary key,
  lesson_id text not null unique references lessons (id),
  length    integer not null
) strict;

create virtual table lesson_text using fts5(
  terms, tags,
  content = '', contentless_delete = 1, tokenize = 'ascii'
);
insert into lesson_text (lesson_text, rank) values ('rank', 'bm25(1.0, 0.0)');
create virtual table lesson_terms using fts5vocab(lesson_text, 'row');

-- 32-bit floats, little-endian.
create table lesson_vectors (
  lesson_id  text not null references lessons (id),
  embedder   text not null,
  dimensions integer not null check (dimensions > 0),
  vector     blob not null check (length(vector) = 4 * dimensions),
  primary key (embedder, lesson_id)
) strict, without rowid;
