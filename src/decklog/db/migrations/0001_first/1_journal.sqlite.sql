-- The journal: append-only entries in hash-chained streams, and the blobs they name.

-- The steps of the schema. Each is chained to the one before it by its digest, so that a changed time shows.
create table schema_steps (
  version    integer primary key,
  name       text not null,
  checksum   text not null,
  applied_at text not null,
  digest     text
) strict;

-- `no` is local to this database. `in_order` says that the times of a stream's entries only grow, so that a time can be found
-- by halving.
create table streams (
  no         integer primary key,
  name       text not null unique,
  created_at text not null,
  in_order   integer not null check (in_order in (0, 1))
) strict;

-- `pos` is the stream's number and the entry's number in it, side by side: one key orders a stream, and an append touches one
-- page where a second index would make it two.
-- Enumerations are spelled with `or`: SQLite builds a table for each `in` with more than two words, at every insert.
-- A hash is stored as 32 bytes and read as 64 digits: a fifth of an entry's size without its texts.
-- The short columns stand first: SQLite reads a row from the left, and a long body spills onto other pages.
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
-- Entries about a task's own record are found by entries_by_record.
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

-- Retention may drop a body or a payload, and only by leaving its digest. What a record was is never dropped.
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

-- Every index that an append has to touch costs it a tenth of a plain insert. What many entries share (kind, agent, phase) and the
-- words themselves are therefore indexed together, from this mark on, when someone asks for them.
-- Words are split in Python, for both engines; `ascii` keeps every other character as it comes.
create virtual table entry_text using fts5(words, tags, content = '', contentless_delete = 1, tokenize = 'ascii');
-- Lists the words that begin with a prefix.
create virtual table entry_terms using fts5vocab(entry_text, 'instance');

create table entry_text_marks (
  stream_no integer primary key,
  pos       integer not null
) strict;
