-- The terms of the lessons that hold, made anew from them at any time: stems and names, the same on both engines. How often each
-- lesson has each term, and how long it is, is what BM25 needs.
drop table lesson_text;

create table lesson_text (
  no        bigint generated always as identity primary key,
  lesson_id {text} not null unique references lessons (id),
  topic     {text} not null,
  project   {text},
  length    integer not null
);

create table lesson_terms (
  term      {text} not null,
  lesson_no bigint not null references lesson_text (no) on delete cascade,
  times     integer not null,
  primary key (term, lesson_no) include (times)
);
create index lesson_terms_by_lesson on lesson_terms (lesson_no);
