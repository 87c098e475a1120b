-- Words are indexed from a mark on when someone searches, as on SQLite. An index on the entries themselves took half of the time of
-- every append.
create table entry_text (
  entry_pos {integer} not null primary key,
  words     tsvector not null
);

create index entry_text_by_word on entry_text using gin (words);

create table entry_text_marks (
  stream_no {integer} not null primary key,
  pos       {integer} not null
);
