-- One piece of feedback has one open fix in a repository, also when two processes begin it at once in two runs.
create unique index mends_open on mends (feedback_id, repo) where state <> 'closed' and state <> 'dropped';
