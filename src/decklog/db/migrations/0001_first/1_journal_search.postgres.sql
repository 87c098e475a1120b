-- Words are indexed later, from a mark on, as on SQLite. An index on the entries took half of the time of an append.
create table entry_text (
  entry_pos {integer} not null primary key,
  words     tsvector not null
);

create index entry_text_by_word on entry_text using gin (words);

create table entry_text_marks (
  stream_no {integer} not null primary key,
  pos       {integer} not null
);
