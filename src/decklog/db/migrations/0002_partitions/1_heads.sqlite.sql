-- The last entry of each stream. It is looked up, because writing it costs a sixth of an append.
create view stream_heads as
select s.no, s.name, e.pos as head_pos, e.seq as head_seq, e.hash as head_hash, e.at as head_at
  from streams s
  join entries e on e.pos = (select max(pos) from entries where pos >= s.no * 4294967296 and pos < (s.no + 1) * 4294967296);

create view all_stream_heads as select * from stream_heads;
