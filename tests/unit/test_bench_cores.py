"""What the benchmark reads from a database's log."""

from __future__ import annotations

import datetime

from tests.bench.cores import Held, held

SERVERS = ("11111111-1111-5111-8111-111111111111", "22222222-2222-5222-8222-222222222222")
CELL = "33333333-3333-5333-8333-333333333333"
OPEN = "INSERT INTO ledger (server_uuid, cell) VALUES " + ",".join(f"('{one}', 'p', '{CELL}')" for one in SERVERS)


def log(*statements: tuple[int, int, str]) -> list[Held]:
    """What is found in statements: thread, milliseconds, text."""
    start = datetime.datetime(2026, 1, 1)
    return list(held((thread, start + datetime.timedelta(milliseconds=ms), text.encode())
                     for thread, ms, text in statements))


def test_held_when_a_row_is_locked_then_from_the_next_statement_to_the_commit() -> None:
    assert log((1, 0, "BEGIN"), (1, 5, "UPDATE quota_locks SET turns=(1) WHERE x"), (1, 8, "SELECT 1"),
               (1, 9, OPEN), (1, 12, "COMMIT")) == [Held("a project's quota", 4.0, 2)]


def test_held_when_transactions_interleave_then_each_is_its_own() -> None:
    found = log((1, 0, "BEGIN"), (2, 0, "BEGIN"),
                (1, 1, "UPDATE resource_providers SET generation=(generation + 1) WHERE id IN (1)"),
                (2, 1, "UPDATE resource_providers SET generation=(generation + 1) WHERE id IN (2)"),
                (1, 2, f"INSERT INTO allocations (provider, consumer) VALUES (1, '{SERVERS[0]}'),(2, '{SERVERS[0]}')"),
                (2, 3, f"DELETE FROM allocations WHERE consumer IN {SERVERS}"),
                (1, 4, "COMMIT"), (2, 9, "COMMIT"))
    assert found == [Held("a host's resources", 2.0, 1), Held("a host's resources", 6.0, 2)]


def test_held_when_no_server_is_named_then_nothing_is_counted() -> None:
    assert log((1, 0, "UPDATE quota_locks SET turns=(1)"), (1, 1, "BEGIN"), (1, 2, "UPDATE quota_locks SET turns=(1)"),
               (1, 3, "COMMIT"), (1, 4, "COMMIT")) == []


def test_held_when_a_transaction_is_rolled_back_then_only_its_repetition_counts() -> None:
    once = ((1, 0, "BEGIN"), (1, 1, "UPDATE quota_locks SET turns=(1)"), (1, 2, OPEN))
    again = [(thread, ms + 10, text) for thread, ms, text in once]
    assert log(*once, (1, 3, "ROLLBACK"), *again, (1, 15, "COMMIT")) == [Held("a project's quota", 3.0, 2)]
