-- What many share and what may be closed for all of them at once: an account that has met its quota, a login that has run out.
create table gates (
  name       {text} not null primary key,
  state      {text} not null check (state = 'open' or state = 'closed'),
  reason     {text} not null,
  closed_at  {text},
  opens_at   {text},
  closings   {integer} not null check (closings >= 0),
  updated_at {text} not null
){strict};
