-- What was said of earlier states of a change: those that begin at the same commit.
create index reviews_by_base on reviews (base, created_at, id);
