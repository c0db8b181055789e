set session characteristics as transaction isolation level read committed, read write;
set jit = off;
select pg_catalog.set_config('synchronous_commit', 'on', false)
  where pg_catalog.current_setting('synchronous_commit') = 'off';
select pg_catalog.set_config('client_encoding', 'SQL_ASCII', false)
  where pg_catalog.current_setting('server_encoding') = 'SQL_ASCII';
set search_path = pg_catalog;
