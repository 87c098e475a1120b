"""Roles for a log on PostgreSQL: who reads, who works and who decides, each with what it needs and no more."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
from psycopg.sql import SQL, Identifier

from decklog.core.errors import Conflict, Invalid, Unavailable
from decklog.core.extras import install_hint
from decklog.db import schema
from decklog.db.postgres.errors import translate

if TYPE_CHECKING:
    from decklog.db.base import Database


class RoleNames(NamedTuple):
    """The three roles of a log; those of a project begin with its name."""

    reader: str
    agent: str
    manager: str


def role_names(prefix: str = "decklog") -> RoleNames:
    """Name the roles of a log."""
    return RoleNames(f"{prefix}_reader", f"{prefix}_agent", f"{prefix}_manager")


# Written once: nobody needs to change it, so nobody may.
_WRITTEN_ONCE = (
    *("entries", "blobs", "charges", "checkpoints", "self_edits", "sightings", "state_versions"),
    *("task_comments", "templates", "edits", "worktree_snapshots"),
)
# Of these, what an import corrects when its source has changed; the manager may.
_CORRECTED = ("charges",)
# What the manager decides. Agents read it.
_OF_THE_MANAGER = (
    *("budgets", "notify_rules", "prices", "proofs", "trust_contract", "trust_changes"),
    *("workflow_versions", "workflow_transitions", "workflow_aliases", "workflow_rules", "workflow_markers", "workflow_models"),
)
# Rows that agents' verbs take out again: of plans, of what is derived, and of those who wait.
_TAKEN_OUT = (
    *("phases", "patterns", "criteria", "dependencies", "schedules", "ready_tags", "budget_days", "listeners"),
    *("spend_days", "graph_checkpoints", "graph_writes", "graph_items"),
    *("lesson_text", "lesson_terms", "lesson_sums", "lesson_marks", "lesson_vectors", "proposal_marks"),
    "line_origins",
)
# A row can be locked only by who may change a column of it: columns that decide nothing, and that `verify` compares.
_LOCKED_BY = {"streams": "in_order, head_seq, head_hash, head_at", "budgets": "set_at", "trust_contract": "updated_at"}
# Retention leaves digests in the place of texts. The triggers of the table see to it that it does nothing else.
_PRUNED = ("body", "payload", "body_digest", "payload_digest")
_OF_THE_OWNER = "schema_steps"
_VIEWS = ("stream_heads", "all_stream_heads")

_HEAD = """\
-- Roles for a log on PostgreSQL. Run this as the owner of its tables, in its database, after `decklog migrate`, and again after
-- each later one: it takes away what these roles had and gives them what they need.
--   {reader}   reads everything and writes nothing
--   {agent}    works: appends entries, claims tasks, charges, asks; never changes or deletes an entry, sets no budget, price,
--                    workflow or trust
--   {manager}  decides as well, and prunes
-- A login gets one of them: create role dev_1 login; grant {agent} to dev_1;
"""


def tables() -> list[str]:
    """Name every table that the migrations leave behind."""
    found: dict[str, None] = {}
    for step in schema.steps("postgres"):
        for did, name in re.findall(r"^(create|create unlogged|drop) table (\w+)", schema.text_of(step, "postgres"), re.M):
            if did == "drop":
                found.pop(name, None)
            else:
                found[name] = None
    return sorted(found)


def statements(place: str = "public", prefix: str = "decklog") -> str:
    """Write the statements that make the roles and give them their rights, for a log in a schema of this name."""
    roles = role_names(prefix)
    everyone, all_tables = ", ".join(roles), tables()
    parts = [
        *(_made(role) for role in roles),
        f"grant {roles.reader} to {roles.agent};\ngrant {roles.agent} to {roles.manager};",
        f"grant usage on schema {_quoted(place)} to {everyone};",
        _on("revoke all", place, [*all_tables, *_VIEWS], "from", everyone),
        _on("grant select", place, [*all_tables, *_VIEWS], "to", roles.reader),
        *_for_agents(place, all_tables, roles.agent),
        *_for_the_manager(place, roles.manager),
    ]
    return _HEAD.format(**roles._asdict()) + "begin;\n" + "\n".join(parts) + "\ncommit;\n"


def _for_agents(place: str, all_tables: list[str], agent: str) -> list[str]:
    written = [name for name in all_tables if name not in (*_OF_THE_MANAGER, _OF_THE_OWNER)]
    changed = [name for name in written if name not in (*_WRITTEN_ONCE, *_LOCKED_BY)]
    return [
        _on("grant insert", place, written, "to", agent),
        _on("grant update", place, changed, "to", agent),
        _on("grant delete", place, [name for name in _TAKEN_OUT if name in all_tables], "to", agent),
        *(_on(f"grant update ({column})", place, [name], "to", agent) for name, column in _LOCKED_BY.items()),
    ]


def _for_the_manager(place: str, manager: str) -> list[str]:
    return [
        _on("grant insert, update, delete", place, list(_OF_THE_MANAGER), "to", manager),
        _on(f"grant update ({', '.join(_PRUNED)})", place, ["entries"], "to", manager),
        _on("grant update", place, list(_CORRECTED), "to", manager),
        _on("grant delete", place, ["blobs", "entry_text"], "to", manager),
    ]


def _made(role: str) -> str:
    return f"do $$ begin create role {role} nologin; exception when duplicate_object then null; end $$;"


def _on(did: str, place: str, names: list[str], to: str, whom: str) -> str:
    listed = ", ".join(f"{_quoted(place)}.{name}" for name in names)
    return f"{did} on {listed} {to} {whom};"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_MARK = "Decklog project"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_LIST = """
select datname,
       has_database_privilege(oid, 'connect'),
       case when has_database_privilege(oid, 'connect') then pg_database_size(oid) end
  from pg_database
 where shobj_description(oid, 'pg_database') = %s
 order by datname
"""


def url_of(server: str, name: str) -> str:
    """Return the address of a project on a server, whose address names any of its databases."""
    return urlsplit(server)._replace(path=f"/{name}").geturl()


def create(server: str, name: str, migrate: Callable[[str], None]) -> None:
    """Create the database and the roles of a project; one that exists is completed and migrated.

    Members of its roles can connect to it. Others can't, except superusers and those who may act as its owner.
    """
    if not _NAME.fullmatch(name):
        raise Invalid(f"{name!r} can't name a project", hint="Use up to 40 of a-z, 0-9 and _, a letter first.", field="name")
    roles = role_names(name)
    database = Identifier(name)
    try:
        with psycopg.connect(server, autocommit=True) as connection:
            _create_database(connection, name)
            connection.execute(SQL("revoke all on database {} from public").format(database))
        migrate(url_of(server, name))
        with psycopg.connect(url_of(server, name), autocommit=True) as connection:
            connection.execute(statements(prefix=name).encode())
            connection.execute(SQL("grant connect, temporary on database {} to {}").format(database, Identifier(roles.reader)))
    except psycopg.Error as problem:
        raise translate(problem) from problem


def _create_database(connection: "psycopg.Connection[Any]", name: str) -> None:
    found = connection.execute(
        "select shobj_description(oid, 'pg_database') from pg_database where datname = %s", [name]
    ).fetchone()
    if found is None:
        connection.execute(SQL("create database {}").format(Identifier(name)))
        connection.execute(SQL("comment on database {} is {}").format(Identifier(name), _MARK))
    elif found[0] != _MARK:
        raise Conflict(f"the server has a database {name} that is no project", hint="Choose another name.")


def projects(server: str) -> list[dict[str, Any]]:
    """List the projects of a server: name, whether this login can open it, and its size."""
    try:
        with psycopg.connect(server, autocommit=True) as connection:
            rows = connection.execute(_LIST, [_MARK]).fetchall()
    except psycopg.Error as problem:
        raise translate(problem) from problem
    return [{"name": name, "can_open": can_open, "bytes": size} for name, can_open, size in rows]


def open_server(url: str, **settings: Any) -> "Database":
    """Open a PostgreSQL database; without its driver, say how to get it."""
    try:
        from decklog.db.postgres.database import open_postgres
    except ImportError as problem:
        raise Unavailable(
            f"PostgreSQL needs a package that is not installed: {problem.name}",
            hint=install_hint("postgres"),
        ) from problem
    return open_postgres(url, **settings)
