-- The journal: append-only entries in hash-chained streams, and their blobs.

-- Applied migrations. Each row has the digest of the row before it, so a changed row is detected.
create table schema_steps (
  version    integer primary key,
  name       text not null,
  checksum   text not null,
  applied_at text not null,
  digest     text
) strict;

-- `no` is local to this database. `in_order`: times of the entries never decrease, so a time is found by binary search.
create table streams (
  no         integer primary key,
  name       text not null unique,
  created_at text not null,
  in_order   integer not null check (in_order in (0, 1))
) strict;

-- `pos` combines the number of the stream and of the entry. One key orders a stream, so an append writes one index page less.
-- Checks use `or`: SQLite builds a temporary table for each `in` with more than two values, at every insert.
-- A hash is stored as 32 bytes and read as 64 hexadecimal digits.
-- Short columns come first: SQLite reads a row from the left, and a long body overflows to other pages.
create table entries (
  pos            integer primary key,
  stream         text not null,
  seq            integer not null check (seq >= 1 and seq = pos % 4294967296),
  at             text not null,
  hash_bytes     blob not null,
  kind           text not null check (kind = 'interaction' or kind = 'reasoning' or kind = 'event' or kind = 'tool' or kind = 'change'),
  subtype        text,
  agent          text,
  agent_id       text,
  group_id       text,
  task_id        text,
  iteration      integer,
  phase          text check (phase = 'understanding' or phase = 'approach' or phase = 'decisions' or phase = 'risks' or phase = 'blockers' or phase = 'pivot' or phase = 'completion'),
  confidence     text check (confidence = 'high' or confidence = 'medium' or confidence = 'low'),
  redacted       integer not null default 0 check (redacted in (0, 1)),
  key            text,
  record_table   text,
  record_id      text,
  refs           text,
  body_digest    text,
  payload_digest text,
  body           text,
  payload        text,
  hash           text generated always as (lower(hex(hash_bytes))) virtual,
  check ((kind = 'change') = (record_table is not null and record_id is not null))
) strict;

create unique index entries_by_key on entries (stream, coalesce(subtype, ''), coalesce(group_id, ''), key) where key is not null;
create index entries_by_record on entries (record_table, record_id, seq) where record_table is not null;
create index entries_by_subtype on entries (subtype, pos) where subtype is not null and kind <> 'change';
create index entries_by_group on entries (group_id, pos) where group_id is not null;
-- Entries about the record of a task are found by entries_by_record.
create index entries_by_task on entries (task_id, pos) where task_id is not null and record_table is distinct from 'tasks';

create table blobs (
  digest text not null primary key,
  size   integer not null check (size >= 0),
  bytes  blob not null
) strict;

create trigger entries_never_go before delete on entries
begin
  select raise(abort, 'journal entries are never deleted');
end;

create trigger entries_never_change before update of
  pos, stream, seq, at, hash_bytes, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key,
  record_table, record_id, refs on entries
begin
  select raise(abort, 'journal entries are never changed');
end;

-- Retention may replace a body or payload by its digest, but never the payload of a record.
create trigger entries_keep_digests before update of body, payload, body_digest, payload_digest on entries
when not (
  old.kind <> 'change'
  and (new.body is old.body or (new.body is null and new.body_digest is not null))
  and (new.payload is old.payload or (new.payload is null and new.payload_digest is not null))
  and (old.body_digest is null or new.body_digest is old.body_digest)
  and (old.payload_digest is null or new.payload_digest is old.payload_digest)
)
begin
  select raise(abort, 'journal entries are never changed');
end;

-- Each further index adds a tenth to an append. Words, kind, agent and phase are therefore indexed later, from this mark on.
-- Python splits the words for both engines; the tokenizer `ascii` keeps all other characters.
create virtual table entry_text using fts5(words, tags, content = '', contentless_delete = 1, tokenize = 'ascii');
-- Lists the words with a prefix.
create virtual table entry_terms using fts5vocab(entry_text, 'instance');

create table entry_text_marks (
  stream_no integer primary key,
  pos       integer not null
) strict;
