-- What is asked about is kept: the digest of its bytes as they are kept, which differs from that of the thing itself where parts of it
-- were redacted.
alter table approvals add column about_digest {text} check (length(about_digest) = 64);
alter table approvals add column redacted {integer} not null default 0 check (redacted in (0, 1));
