"""The schema of a PostgreSQL log: migrations, version, and comparison with the server's catalogue."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from decklog.core.clock import to_text
from decklog.db import schema
from decklog.db.base import Database, Row
from decklog.db.postgres import errors, partitions
from decklog.db.schema import Objects
from decklog.db.search.vectors import is_ours

if TYPE_CHECKING:
    from decklog.db.postgres.transactions import PostgresTransactions

_MIGRATING = 4919131752989213


def migrate(database: "PostgresTransactions") -> list[str]:
    """Apply the missing steps, each in a transaction with its version row, one process at a time."""
    applied = []
    for step in schema.steps("postgres"):
        if step.name == partitions.STEP and database.read(lambda: [version for version, *_ in _applied(database)]) == [1]:
            partitions.prepare(database)
        # A step may take as long as it takes: an index over years of entries is not made in a moment.
        with database.held(patience_seconds=None):
            database.rows(f"select pg_advisory_xact_lock({_MIGRATING})", {})
            applied_before = _applied(database)
            schema.check_steps(applied_before, "postgres", "this database")
            if all(step.version > version for version, _, _ in applied_before):
                with database.session().exclusive() as connection:
                    connection.execute(schema.text_of(step, "postgres").encode(), prepare=False)
                _note(database, step)
                applied.append(step.name)
    return applied


def _note(database: Database, step: "schema.MigrationStep") -> None:
    database.rows(
        "insert into schema_steps (version, name, checksum, applied_at) values (:version, :name, :sum, :at)",
        {
            "version": step.version,
            "name": step.name,
            "sum": schema.checksum_of(step, "postgres"),
            "at": to_text(database.clock.now()),
        },
    )
    database.many(schema.WRITE_DIGEST, [*schema.missing_digests(database.rows(schema.APPLIED, {})[1])])


def _applied(database: Database) -> list[Row]:
    """Read the steps that were applied; none in a database without a log."""
    found = database.one("select to_regclass('schema_steps')::text", {})
    if found is None or found[0] is None:
        return []
    return database.rows("select version, name, checksum from schema_steps order by version", {})[1]


def check_version(database: Database) -> int:
    """Raise an error for a schema that this Decklog does not know. Return the newest version that it knows."""
    applied = _applied(database)
    version, required = max((row[0] for row in applied), default=0), schema.required(applied)
    latest = schema.latest("postgres")
    if version < latest:
        raise schema.too_old("this database", version, "postgres", hint="Run: decklog migrate")
    schema.check_required(required, "postgres", "this database")
    schema.check_steps(applied, "postgres", "this database")
    return latest


def may_append(database: Database) -> bool:
    """Return whether this role may write entries; one that may not has a log that is for reading only."""
    row = database.one("select has_table_privilege('entries', 'insert')", {})
    return bool(row and row[0])


def facts(database: Database) -> dict[str, Any]:
    """Describe the server and the schema for `doctor`."""
    row = database.one("select version(), pg_database_size(current_database()), current_database()", {})
    assert row is not None
    return {
        "engine": "postgres",
        "engine_version": row[0].split(" ")[1],
        "database": row[2],
        "schema": max((version for version, _, _ in _applied(database)), default=0),
        "schema_supported": schema.latest("postgres"),
        "bytes": row[1],
        "read_only": database.read_only,
        **replication(database),
    }


# Details of other sessions are null for a role without pg_monitor.
_REPLICATION = """
select pg_is_in_recovery(),
       case
         when not pg_is_in_recovery() then (
           select extract(epoch from max(coalesce(replay_lag, '0'))) from pg_stat_replication where state is not null
         )
         when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() and exists (select 1 from pg_stat_wal_receiver) then 0
         else extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())
       end::float8,
       (select count(*) from pg_stat_replication where application_name <> 'pg_basebackup'),
       current_setting('synchronous_standby_names')
"""


def replication(database: Database) -> dict[str, Any]:
    """Describe the standbys of a primary, or how far a standby is behind."""
    row = database.one(_REPLICATION, {})
    assert row is not None
    return {
        "is_standby": row[0],
        "standbys": row[2],
        "synchronous_standby_names": row[3],
        "replication_lag_seconds": row[1],
    }


# Each with the schema's own name taken out of it. Objects of extensions and of others are ignored.
_OBJECTS = """
with place as (
  select n.oid, quote_ident(n.nspname) || '.' as prefix from pg_namespace n where n.oid = {place}
), tables as (
  select c.oid, c.relname, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity
    from pg_class c
    join place on place.oid = c.relnamespace
   where c.relkind in ('r', 'p', 'v', 'm', 'f')
), silenced as (
  select tgrelid, count(*) as number from pg_trigger where tgisinternal and tgenabled <> 'O' group by tgrelid
)
select 'table', relname, relname, concat(relkind, relpersistence, relrowsecurity, relforcerowsecurity, coalesce(number, 0))
  from tables
  left join silenced on tgrelid = tables.oid
union all
select 'column', relname, attname,
       concat(format_type(atttypid, atttypmod), ' ', attnotnull, ' ', attcollation::regcollation, ' ', attidentity, ' ',
              pg_get_expr(adbin, adrelid))
  from tables
  join pg_attribute on attrelid = tables.oid
  left join pg_attrdef on adrelid = tables.oid and adnum = attnum
 where attnum > 0
   and not attisdropped
union all
select 'constraint', relname, conname, replace(pg_get_constraintdef(k.oid), prefix, '')
  from tables
  join pg_constraint k on conrelid = tables.oid, place
 where contype in ('p', 'u', 'f', 'c', 'x')
union all
select 'index', tables.relname, c.relname, concat(replace(pg_get_indexdef(i.indexrelid), prefix, ''), ' ', i.indisvalid)
  from tables
  join pg_index i on i.indrelid = tables.oid
  join pg_class c on c.oid = i.indexrelid, place
union all
select 'trigger', relname, tgname, concat(replace(pg_get_triggerdef(t.oid), prefix, ''), ' ', tgenabled)
  from tables
  join pg_trigger t on tgrelid = tables.oid, place
 where not tgisinternal
union all
select 'rule', relname, rulename, replace(pg_get_ruledef(r.oid), prefix, '')
  from tables
  join pg_rewrite r on ev_class = tables.oid, place
 where rulename <> '_RETURN'
union all
select 'policy', relname, polname, concat(polcmd, pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid))
  from tables
  join pg_policy on polrelid = tables.oid
union all
select 'function', '', proname,
       string_agg(
         concat(
           pg_get_function_identity_arguments(p.oid), l.lanname, prosecdef,
           replace(proconfig::text, rtrim(prefix, '.') || ', pg_temp', ', pg_temp'), prosrc
         ), ' ' order by p.oid
       )
  from pg_proc p
  join place on place.oid = p.pronamespace
  join pg_language l on l.oid = p.prolang
 where not exists (select 1 from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype = 'e')
 group by proname
"""
_OF_THE_LOG = _OBJECTS.format(place="(select relnamespace from pg_class where oid = to_regclass('schema_steps'))")
_known: dict[tuple[tuple[str, str], ...], Objects] = {}
_SETTING = ("setting", "", "session_replication_role")


def differences(database: Database, url: str) -> Iterator[dict[str, Any]]:
    """Name what is not as the migrations made it. A role that may not create a schema to compare with gets an error."""
    applied = database.rows(schema.APPLIED, {})[1]
    schema.check_known(applied, "postgres")
    expected = _expected_objects(url)
    found = _objects_in(database.rows(_OF_THE_LOG, {})[1])
    # A new log has one range for its first runs.
    for table, [leaf] in partitions.leaves(expected).items():
        expected, like_leaf = partitions.split(expected, leaf)
        for name in partitions.leaves(found)[table]:
            _, theirs = partitions.split(found, name)
            for problem in schema.differences(like_leaf, partitions.renamed(theirs, name, leaf)):
                yield {**problem, "what": problem["what"].replace(leaf, name), "table": name}
    yield from partitions.wrong_ranges(database)
    tables = {table for _, table, _ in expected}
    ours = {
        key: text
        for key, text in found.items()
        if key in expected or (key[1] in tables - {""} and not is_ours(key[0], key[2], text))
    }
    role = database.one("select current_setting('session_replication_role')", {})
    yield from schema.differences(expected, {**ours, _SETTING: str(role and role[0])})
    yield from schema.step_differences(applied, "postgres")


def _expected_objects(url: str) -> Objects:
    """Return what the migrations make on this server: they are applied to a new schema, which is rolled back."""
    # Databases of one server are made alike, so that what one role was shown in one of them holds for the others.
    place = tuple(sorted((name, str(value)) for name, value in conninfo_to_dict(url).items() if name != "dbname"))
    if place not in _known:
        try:
            _known[place] = {**_made(url, f"decklog_reference_{os.getpid()}"), _SETTING: "origin"}
        except psycopg.Error as problem:
            raise errors.translate(problem) from problem
    return _known[place]


def _made(url: str, name: str) -> Objects:
    with psycopg.connect(url) as connection:
        connection.execute(f"create schema {name}".encode())
        connection.execute(f"set local search_path to {name}".encode())
        for step in schema.steps("postgres"):
            connection.execute(schema.text_of(step, "postgres").encode())
        place = f"'{name}'::regnamespace"
        made = _objects_in(connection.execute(_OBJECTS.format(place=place).encode()).fetchall())
        connection.rollback()
    return made


def _objects_in(rows: Iterable[tuple[Any, ...]]) -> Objects:
    return {(kind, table, name): text for kind, table, name, text in rows}
