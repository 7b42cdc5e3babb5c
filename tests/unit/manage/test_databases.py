"""Which database a command works on, and what it says of one that is away or refuses."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from nova.cmd import tool_ending
from nova.db.models import cell as tables
from nova.db.sql.engine import Database
from nova.manage import databases, main
from tests.unit.manage.tool_scene import Tool, tool

__all__ = ["tool"]

DENIED = b"#28000Access denied for user 'nova'@'here' (using password: YES)"


@contextlib.contextmanager
def refusing(number: int, text: bytes) -> Iterator[int]:
    """A server of MySQL's protocol that sends every client away with an error; its port."""
    packet = b"\xff" + struct.pack("<H", number) + text

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as client:
                    client.sendall(struct.pack("<I", len(packet))[:3] + b"\0" + packet)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def run(url: str, section: str, words: str, tool: Tool, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status, and what stands on standard error."""
    (tool.folder / "away.conf").write_text(f"[{section}]\nconnection = {url}\n")
    options = tool.options("away.conf")
    given = main.parser().parse_args(words.split())
    code = tool_ending.status(options, main.BINARY, lambda: given.command.run(options, given))
    return code, capsys.readouterr().err


@pytest.mark.parametrize(("section", "words"), [
    ("api_database", "api_db sync"), ("database", "db sync --local_cell"), ("api_database", "cell_v2 list_cells"),
    ("database", "db version")])
@pytest.mark.parametrize(("number", "text", "said"), [
    (1045, DENIED, "Access denied"), (1040, b"#08004Too many", "many"),
    (1049, b"#42000Unknown database 'nova'", "Unknown database")])
def test_command_when_the_database_refuses_then_one_line_and_1(
        tool: Tool, capsys: pytest.CaptureFixture[str], section: str, words: str, number: int, text: bytes, said: str
        ) -> None:
    with refusing(number, text) as port:
        code, err = run(f"mysql+pymysql://nova:pass-word@127.0.0.1:{port}/nova", section, words, tool, capsys)
    assert code == 1 and err.count("\n") == 1 and said in err and "pass-word" not in err


@pytest.mark.parametrize("url", ["mysql://nova:pass-word@127.0.0.1:1/nova", "postgresql://nova:pass-word@127.0.0.1:1/x",
                                 "sqlite:////nonexistent/folder/nova.db"])
def test_command_when_the_database_is_away_then_one_line_and_1(tool: Tool, capsys: pytest.CaptureFixture[str], url: str
                                                              ) -> None:
    code, err = run(url, "database", "db sync", tool, capsys)
    assert code == 1 and err.count("\n") == 1 and "Traceback" not in err and "pass-word" not in err


def test_command_when_the_database_refuses_a_statement_then_one_line_and_1(
        tool: Tool, capsys: pytest.CaptureFixture[str]) -> None:
    database = Database(tool.url("nova"))
    with database.engine.begin() as tx:  # what db sync is about to make
        tx.execute(sa.text("create view servers as select 1 as id"))
    database.dispose()
    code, err = run(tool.url("nova"), "database", "db sync", tool, capsys)
    assert code == 1 and err.count("\n") == 1 and "refuses the statement: view" in err


# -- row 8 of the tools: the API tier's [database] is cell0's

def names_of(database: Database) -> set[str]:
    with database.reading() as tx:
        return set(tx.execute(sa.select(tables.services.c.host)).scalars())


def test_cell_when_the_file_is_an_api_tiers_then_the_recorded_database_is_it(tool: Tool) -> None:
    tool.write("api", "nova_cell0", api=True)
    tool.write("cell", "nova", api=True)
    for words in ("api_db sync", f"cell_v2 map_cell0 --database_connection {tool.url('nova_cell0')}",
                  "db sync --local_cell"):
        tool.ok("api", words)
    tool.ok("cell", "db sync --local_cell")
    assert databases.serving(tool.options("api"), "cell").url == tool.url("nova_cell0"), "nothing is recorded yet"
    tool.ok("cell", "cell_v2 create_cell")
    tool.add_host("nova", "compute1")
    for file in ("api", "cell"):
        found = databases.synced(tool.options(file), "cell")
        assert names_of(found) == {"compute1"}
        found.dispose()
    own = databases.database_of(tool.options("api"), "cell")
    assert names_of(own) == set() and own.url == tool.url("nova_cell0"), "what db sync works on"
    own.dispose()


def test_cell_when_its_recorded_url_cannot_be_used_then_2_and_the_way(tool: Tool, capsys: pytest.CaptureFixture[str]
                                                                     ) -> None:
    tool.write("api", "nova_cell0", api=True)
    for words in ("api_db sync", f"cell_v2 map_cell0 --database_connection {tool.url('nova_cell0')}",
                  "cell_v2 create_cell --database_connection mysql://nova:pass-word@db:port/nova"):
        tool.ok("api", words)
    options = tool.options("api")
    code = tool_ending.status(options, main.BINARY, lambda: bool(databases.serving(options, "cell")))
    err = capsys.readouterr().err
    assert code == 2 and err.count("\n") == 1 and "update_cell" in err and "pass-word" not in err


def test_cell_when_the_file_is_the_cells_then_a_stale_record_does_not_matter(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    for words in ("api_db sync", "cell_v2 map_cell0",
                  f"cell_v2 create_cell --database_connection {tool.url('former')} --transport-url rabbit://h"):
        tool.ok("nova.conf", words)
    assert databases.serving(tool.options("nova.conf"), "cell").url == tool.url("nova")


def lose_key(tool: Tool) -> None:
    """Drop the key that encrypts the cells' URLs."""
    database = Database(tool.url("nova_api"))
    with database.engine.begin() as tx:
        tx.execute(sa.text("delete from api_settings"))
    database.dispose()


def test_cell_when_its_record_cannot_be_decrypted_then_the_cells_own_file_works_on(tool: Tool) -> None:
    tool.write("nova.conf", "nova", api=True)
    for words in ("api_db sync", "cell_v2 map_cell0", "cell_v2 create_cell"):
        tool.ok("nova.conf", words)
    lose_key(tool)
    assert databases.serving(tool.options("nova.conf"), "cell").url == tool.url("nova")


def test_cell_when_its_record_cannot_be_decrypted_in_the_api_tier_then_2_and_the_option(
        tool: Tool, capsys: pytest.CaptureFixture[str]) -> None:
    tool.write("api", "nova_cell0", api=True)
    tool.write("cell", "nova", api=True)
    tool.ok("api", "api_db sync")
    tool.ok("api", f"cell_v2 map_cell0 --database_connection {tool.url('nova_cell0')}")
    tool.ok("cell", "cell_v2 create_cell")
    lose_key(tool)
    options = tool.options("api")
    code = tool_ending.status(options, main.BINARY, lambda: bool(databases.serving(options, "cell")))
    err = capsys.readouterr().err
    assert code == 2 and err.count("\n") == 1 and "[conductor]host_secret_key" in err and "update_cell" in err
