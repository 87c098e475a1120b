-- Words are indexed from a mark on when someone searches, as on SQLite. An index on the entries themselves took half of the time of
-- every append.
drop index if exists entries_by_text;

create table entry_text (
  entry_pos bigint not null primary key,
  words     tsvector not null
);

create index entry_text_by_word on entry_text using gin (words);

create table entry_text_marks (
  stream_no bigint not null primary key,
  pos       bigint not null
);
