"""The tables that `log.py` names are those of the stores."""

from decklog.log import STORES, TABLES, RecordClasses, store_class


def test_tables_are_those_of_the_stores() -> None:
    found = {name: tuple(record.table for record in store_class(name).records) for name in STORES}
    assert {name: tables for name, tables in found.items() if tables} == TABLES


def test_each_table_has_its_class() -> None:
    classes = RecordClasses()
    assert [record.table for record in classes.values()] == list(classes)
    assert "entries" not in classes
