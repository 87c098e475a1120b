-- Words are split in Python, for both engines. Entries are indexed anew in steps.
delete from entry_text;
delete from entry_text_marks;
