-- Each step is chained to the one before it, so that a changed time shows. Steps of older logs get their digests with this one.
alter table schema_steps add column digest {text};
