-- The length of its lesson stands beside each term: words are weighed without looking up every lesson that has one of them.
alter table lesson_terms drop constraint lesson_terms_pkey;
alter table lesson_terms add column length integer;
update lesson_terms t set length = l.length from lesson_text l where l.no = t.lesson_no;
alter table lesson_terms alter column length set not null;
alter table lesson_terms add primary key (term, lesson_no) include (times, length);
