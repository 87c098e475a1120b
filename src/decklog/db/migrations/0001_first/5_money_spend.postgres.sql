create function keep_spend_open() returns trigger language plpgsql as $$
begin
  insert into spend_open (stream) values (coalesce(new.run_id, '@ledger')) on conflict do nothing;
  return null;
end $$;

create trigger spend_open_charged after insert on charges for each row execute function keep_spend_open();
