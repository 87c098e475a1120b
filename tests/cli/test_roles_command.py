from decklog.transfer.projects import roles_sql
from tests.cli.conftest import Program


def test_the_program_writes_the_statements_for_a_schema_of_any_name(decklog: Program) -> None:
    said = decklog("roles", "--schema", 'log"s')
    assert said.code == 0
    assert 'on "log""s".entries' in said.out.replace(", ", " on ")
    assert decklog("roles").out == roles_sql()
    assert decklog("roles", "--json").data["sql"] == roles_sql()
