-- The table of the gate, and the functions that guard its runs. @schema is the schema that the program has named, "punctual"
-- unless it has named another. One transaction makes all of it (server/tables.rs), and writes the version into @schema.gate_version.

create sequence @schema.gate_fence;
create table @schema.gate (
  name        text primary key check (length(name) between 1 and 200),
  tick        timestamptz not null,
  done        boolean     not null,
  fence       bigint      not null,
  overtaken   bigint      not null,
  holder      text        not null,
  lease       interval    not null,
  lease_until timestamptz not null
) with (fillfactor = 50);
comment on column @schema.gate.overtaken is 'Of the fences up to this one, each whose run had not ended was overtaken.';
create function @schema.guard(of_name text, of_fence bigint) returns void
language plpgsql as $guard$
begin
  perform 1 from @schema.gate g where g.name = of_name and g.fence = of_fence for key share;
  if not found then
    raise exception 'fence % of % is stale: the run has lost its lease, and another one may have begun',
      of_fence, quote_literal(of_name)
      using errcode = 'PJ001', hint = 'Roll this transaction back and end the run.';
  end if;
end $guard$;
create function @schema.finish(of_name text, of_fence bigint) returns void
language plpgsql as $finish$
begin
  update @schema.gate g set done = true, lease_until = clock_timestamp()
   where g.name = of_name and g.fence = of_fence and not g.done;
  if not found then
    raise exception 'fence % of % is stale or finished', of_fence, quote_literal(of_name)
      using errcode = 'PJ001', hint = 'Roll this transaction back and end the run.';
  end if;
end $finish$;
