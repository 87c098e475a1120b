-- Words are split in Python, for both engines; `ascii` keeps every other character as it comes. Entries are indexed anew in steps.
drop table entry_text;
create virtual table entry_text using fts5(words, tags, content = '', contentless_delete = 1, tokenize = 'ascii');
-- Lists the words that begin like a prefix.
create virtual table entry_terms using fts5vocab(entry_text, 'instance');

delete from entry_text_marks;
