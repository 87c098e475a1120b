-- The last entry of each stream: an append reads it with the lock on the row, and heads are listed from one table.
alter table streams add column head_seq {integer} not null default 0 check (head_seq >= 0 and head_seq < 4294967296);
alter table streams add column head_hash {text} not null default '';
alter table streams add column head_at {text} not null default '';

update streams
   set head_seq = (select max(pos) from entries where pos >= no * 4294967296 and pos < (no + 1) * 4294967296) - no * 4294967296
 where exists (select 1 from entries where pos >= no * 4294967296 and pos < (no + 1) * 4294967296);
update streams
   set head_hash = (select e.hash from entries e where e.pos = no * 4294967296 + head_seq),
       head_at = (select e.at from entries e where e.pos = no * 4294967296 + head_seq)
 where head_seq > 0;

-- Lock a stream until the transaction ends. Return its head, the newest migration that a writer must know, and whether somebody
-- listens to the stream. In PL/pgSQL each statement sees what was committed while the statement before it waited for the lock.
create or replace function lock_stream(
  p_stream varchar, out version bigint, out name varchar, out no bigint, out pos bigint, out hash varchar, out at varchar,
  out is_listened_to boolean
) language plpgsql as $$
begin
  select s.no, s.name, s.no * 4294967296 + s.head_seq, s.head_hash, s.head_at
    into no, name, pos, hash, at
    from streams s
   where s.name = p_stream
     for update;
  version := (select max(v.version) from schema_steps v where v.name not like '%_compatible');
  is_listened_to := exists (select 1 from listeners l where l.stream in (p_stream, '*') and l.until > now());
end
$$;
