"""Who opens the databases, by the word of the server's own log, when each daemon's nova.conf has their URLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from tests.functional.backends import wait_until
from tests.functional.cloud import Cloud, Plan

pytestmark = pytest.mark.in_turn(4, 10)

#: A user that the server lets in, so that whoever tries it is in the log.
NOSY = "nosy"
CONNECTS = ("SELECT DISTINCT SUBSTRING_INDEX(argument, '@', 1) FROM mysql.general_log "
            "WHERE command_type = 'Connect'")


@pytest.fixture(scope="module")
def server(backends) -> Iterator[Any]:
    """MariaDB, with its general log in a table."""
    url = sa.make_url(backends.database("mariadb").create("log_of_connects")).set(database="mysql")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in (f"CREATE USER IF NOT EXISTS '{NOSY}'@'127.0.0.1' IDENTIFIED BY '{NOSY}'",
                          "TRUNCATE mysql.general_log",
                          "SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = ON"):
            connection.exec_driver_sql(statement)
        yield connection
        connection.exec_driver_sql("SET GLOBAL general_log = OFF")
    engine.dispose()


@pytest.fixture(scope="module")
def cloud(make_cloud, server: Any) -> Iterator[Cloud]:
    made = make_cloud(Plan(upstream=True, placement=True, certs=True, consoles=True,
                           options={"DEFAULT": {"enabled_apis": "osapi_compute,metadata"}}))
    made.prepare()
    for path in made.root.glob("etc/*/nova.conf"):
        text = path.read_text()
        assert text.count("nova:nova@127.0.0.1") >= 2
        path.write_text(text.replace("mysql+pymysql://nova:nova@", f"mysql+pymysql://{NOSY}:{NOSY}@"))
    made.write_own("conductor", {name: {"connection": url} for name, url in made.database_urls.items()})
    made._add("novncproxy", "novncproxy", "ctl")
    for daemon in made.daemons.values():
        daemon.start()
    made.wait_up()
    made.create_sample_data()
    yield made
    made.stop()


def test_databases_when_every_file_has_their_urls_then_only_conductors_connect(cloud: Cloud, server: Any) -> None:
    api = cloud.api()
    uuid = api.boot("vm")["id"]
    api.call("POST", f"/servers/{uuid}/remote-consoles", {"remote_console": {"protocol": "vnc", "type": "novnc"}})
    api.delete(uuid)
    wait_until("it is gone", lambda: api.is_gone(uuid), 20)
    assert set(server.exec_driver_sql(CONNECTS).scalars()) == {"nova"}
    others = [daemon for name, daemon in cloud.daemons.items() if not name.startswith("conductor")]
    assert len(others) >= 6
    for daemon in others:
        daemon.reload()
        daemon.wait_log("configuration reloaded")
        said = [line for line in daemon.text().splitlines() if "only nova-conductor opens databases" in line]
        assert len(said) == 1 and f"[database]connection in {daemon.config}" in said[0] and NOSY not in daemon.text()


def test_log_of_the_server_when_somebody_connects_with_such_a_url_then_it_shows(cloud: Cloud, server: Any) -> None:
    url = sa.make_url(cloud.database_urls["database"]).set(username=NOSY, password=NOSY, database="information_schema")
    engine = sa.create_engine(url)
    engine.connect().close()
    engine.dispose()
    assert NOSY in set(server.exec_driver_sql(CONNECTS).scalars())
