create trigger spend_open_charged after insert on charges
begin
  insert or ignore into spend_open (stream) values (coalesce(new.run_id, '@ledger'));
end;
