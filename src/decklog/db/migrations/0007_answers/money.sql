-- The provider's own id of an answer: told by a hook, a transcript, an editor or an import, in whatever run, it is paid for once. Logs
-- that were kept apart may each have it, so it is no constraint: they can still be brought together.
alter table charges add column answer_id {text};
create index charges_by_answer on charges (answer_id) where answer_id is not null;
