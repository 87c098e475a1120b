-- The hash of an entry is kept as its 32 bytes and read as the 64 digits that it always was: a fifth of what an entry takes
-- besides its texts. Where a damaged one is no hexadecimal number, its bytes stay as they are, and still do not match.
create table entries_with_bytes (
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

insert into entries_with_bytes (
  pos, stream, seq, at, hash_bytes, kind, subtype, agent, agent_id, group_id, task_id, iteration, phase, confidence, redacted, key,
  record_table, record_id, refs, body_digest, payload_digest, body, payload
)
select pos, stream, seq, at, coalesce(unhex(hash), cast(hash as blob)), kind, subtype, agent, agent_id, group_id, task_id,
       iteration, phase, confidence, redacted, key, record_table, record_id, refs, body_digest, payload_digest, body, payload
  from entries
 order by pos;

drop table entries;
alter table entries_with_bytes rename to entries;

create unique index entries_by_key on entries (stream, coalesce(subtype, ''), coalesce(group_id, ''), key) where key is not null;
create index entries_by_record on entries (record_table, record_id, seq) where record_table is not null;
create index entries_by_subtype on entries (subtype, pos) where subtype is not null and kind <> 'change';
create index entries_by_group on entries (group_id, pos) where group_id is not null;
create index entries_by_task on entries (task_id, pos) where task_id is not null and record_table is distinct from 'tasks';

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
