-- How many lessons the index has, and how many terms: a word is worth what it is rare.
create table lesson_sums (
  id      {integer} not null primary key check (id = 1),
  lessons {integer} not null,
  terms   {integer} not null
){strict};
insert into lesson_sums (id, lessons, terms) values (1, 0, 0);

-- How far what is made of the lessons has come in the stream of the memory: the index of their terms catches up from there.
create table lesson_marks (
  name {text} not null primary key,
  seq  {integer} not null
){strict};
