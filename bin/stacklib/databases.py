"""The database server: one instance of MariaDB or PostgreSQL, with a database and a user for each service."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from .errors import StackError
from .layout import PORTS, Layout, write_private
from .secrets import Secrets
from .spec import STORES, Daemon, Probe
from .stack import Stack

# database: its user. Each peer service has access only to its own; the conductor uses both databases of nova.
DATABASES = {
    "keystone": "keystone",
    "glance": "glance",
    "neutron": "neutron",
    "cinder": "cinder",
    "nova_api": "nova",
    "nova": "nova",
}
# The schemes of SQLAlchemy's URLs, by server: for nova, and for the peer services.
SCHEMES = {
    "mariadb": {"nova": "mysql+pymysql", "nextdoor": "mysql+pymysql"},
    "postgresql": {"nova": "postgresql+psycopg", "nextdoor": "postgresql+psycopg2"},
}
BEING_MADE = ".stack-making-"  # prefix of directories in which a server's first files are created


def owners(layout: Layout) -> dict[str, str]:
    """Return the user of each database. A further cell has a database and a user of its own."""
    return DATABASES | {cell.own("nova", "_"): cell.own("nova", "_") for cell in layout.further_cells}


def url(layout: Layout, secrets: Secrets, database: str) -> str:
    server, user = layout.choices.database, owners(layout)[database]
    scheme = SCHEMES[server]["nova" if user.startswith("nova") else "nextdoor"]
    suffix = "?charset=utf8mb4" if server == "mariadb" else ""
    return f"{scheme}://{user}:{secrets.password(f'db-{user}')}@{layout.address}:{PORTS[server]}/{database}{suffix}"


def daemon(stack: Stack) -> Daemon:
    """Return the daemon of the chosen server; create its files and data directory if they are missing."""
    return {"mariadb": _mariadb, "postgresql": _postgresql}[stack.layout.choices.database](stack)


def ensure_databases(stack: Stack) -> None:
    """Create the databases on a running server: PostgreSQL's here; MariaDB creates them from its init file."""
    if stack.layout.choices.database == "postgresql" and not stack.done("postgresql-databases"):
        _create_postgresql_databases(stack)
        stack.mark_done("postgresql-databases")


def begin_tables(stack: Stack, service: str) -> None:
    """Prepare the first creation of a service's tables; its stamp is the service's name.

    Keystone, Glance, Neutron and Cinder fail on tables that a killed first run has left: such a database is dropped and
    created again. A database with complete tables is never dropped.
    """
    if stack.layout.path("stamps", service).exists():
        return
    if stack.done(f"{service}-begun"):
        owner = DATABASES[service]
        again = {
            "mariadb": f"DROP DATABASE IF EXISTS `{service}`; CREATE DATABASE `{service}` CHARACTER SET utf8mb4;",
            "postgresql": f"DROP DATABASE IF EXISTS {service};\nCREATE DATABASE {service} OWNER {owner};\n",
        }
        run_as_root(stack, again[stack.layout.choices.database])
    stack.mark_done(f"{service}-begun")


def run_as_root(stack: Stack, script: str) -> None:
    """Run SQL as root over the server's socket in the state directory: root has no access over the network."""
    data = stack.layout.data
    if stack.layout.choices.database == "mariadb":
        command, user = ["mariadb", "--no-defaults", f"--socket={data}/mariadb/mariadb.sock", "-u", "root"], None
    else:
        command, user = _psql(stack), "postgres"
    result = subprocess.run(
        command, input=script, user=user, group=user, extra_groups=[] if user else None, capture_output=True, text=True,
        check=False, cwd="/", env={**os.environ, "PGOPTIONS": "-c client_min_messages=error"},
    )  # fmt: skip
    errors = [line for line in result.stderr.splitlines() if "already exists" not in line]
    if result.returncode or errors:
        raise StackError("the server refuses to create databases:\n" + "\n".join(f"  {line}" for line in errors),
                         "fix the cause and run `bin/stack up` again")  # fmt: skip


def directory_to_come(data: Path, owner: str) -> Path:
    """Create the directory for a server's first files. It is renamed once they are complete: a server does not detect
    an incomplete set."""
    for left in data.glob(f"{BEING_MADE}*"):
        shutil.rmtree(left)
    made = Path(tempfile.mkdtemp(prefix=BEING_MADE, dir=data))
    shutil.chown(made, owner, owner)
    return made


def put_in_place(made: Path, tables: Path) -> None:
    """Move the created files to the server's data directory.

    Files that are there, usually an incomplete set of a killed `up`, are kept under another name: they could be data.
    """
    if tables.is_symlink() or tables.is_mount():
        for path in made.iterdir():
            shutil.move(path, tables.resolve() / path.name)
        made.rmdir()
        return
    if tables.is_dir() and any(tables.iterdir()):
        tables.rename(tables.with_name(f"{tables.name}.unfinished-{time.strftime('%Y%m%dT%H%M%S')}"))
    made.rename(tables)


# --- MariaDB ---------------------------------------------------------------------------------------------------------


def mariadb_setup(layout: Layout, secrets: Secrets) -> str:
    """Return SQL that may run at every start. Users log in by password; root only through the socket, as root."""
    lines = []
    for user in sorted(set(owners(layout).values())):
        lines.append(f"CREATE USER IF NOT EXISTS '{user}'@'%' IDENTIFIED BY '{secrets.password(f'db-{user}')}';")
    for database, user in owners(layout).items():
        lines.append(f"CREATE DATABASE IF NOT EXISTS `{database}` CHARACTER SET utf8mb4;")
        lines.append(f"GRANT ALL PRIVILEGES ON `{database}`.* TO '{user}'@'%';")
    return "\n".join(lines) + "\n"


def mariadb_settings(layout: Layout, data: Path) -> str:
    # a test cloud loses at most a second of commits if the whole machine crashes, none if only the server crashes
    flush = 2 if layout.sandbox else 1
    return f"""\
[mariadbd]
user = mysql
datadir = {data}/tables
socket = {data}/mariadb.sock
pid-file = {data}/mariadb.pid
bind-address = {layout.address}
port = {PORTS["mariadb"]}
init-file = {layout.etc}/mariadb/setup.sql
skip-name-resolve
skip-log-bin
max_connections = 1000
innodb_buffer_pool_size = 256M
innodb_flush_log_at_trx_commit = {flush}
performance_schema = off
"""


def _mariadb(stack: Stack) -> Daemon:
    layout, etc = stack.layout, stack.layout.etc / "mariadb"
    stack.directory("etc", "mariadb", owner="mysql")
    data = stack.directory("data", "mariadb", owner="mysql")
    write_private(etc / "setup.sql", mariadb_setup(layout, stack.secrets), owner="mysql")
    write_private(etc / "mariadb.cnf", mariadb_settings(layout, data), owner="mysql")
    if not (data / "tables" / "mysql").is_dir():
        made = directory_to_come(data, "mysql")
        stack.command(
            "mariadb",
            [
                "mariadb-install-db",
                f"--defaults-file={etc}/mariadb.cnf",
                f"--datadir={made}",
                "--user=mysql",
                "--skip-test-db",
                "--auth-root-authentication-method=socket",
                "--skip-name-resolve",
            ],
        )
        put_in_place(made, data / "tables")
    server = Daemon(
        name="mariadb",
        argv=("/usr/sbin/mariadbd", f"--defaults-file={etc}/mariadb.cnf"),
        user="mysql",
        probe=Probe("tcp", f"{layout.address}:{PORTS['mariadb']}"),
        room=layout.controller_room,
        cwd=str(data),
        tier=STORES,
        start_seconds=90,
        stop_seconds=60,
    )
    return server.stamped(etc / "setup.sql", etc / "mariadb.cnf")


# --- PostgreSQL ------------------------------------------------------------------------------------------------------


def postgresql_settings(layout: Layout, data: Path) -> str:
    return f"""\
listen_addresses = '{layout.address}'
port = {PORTS["postgresql"]}
unix_socket_directories = '{data}'
max_connections = 500
password_encryption = scram-sha-256
synchronous_commit = {"off" if layout.sandbox else "on"}
logging_collector = off
timezone = 'UTC'
log_timezone = 'UTC'
"""


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not found:
        raise StackError("PostgreSQL is not installed", "run `bin/stack install --parts databases`")
    return found[-1].parent


def _postgresql(stack: Stack) -> Daemon:
    layout, binaries = stack.layout, _binaries()
    data = stack.directory("data", "postgresql", owner="postgres", mode=0o700)
    tables = data / "tables"
    if not (tables / "PG_VERSION").exists():
        made = directory_to_come(data, "postgres")
        stack.command(
            "postgresql",
            [
                f"{binaries}/initdb",
                "-D",
                str(made),
                "--auth-local=peer",
                "--no-instructions",
                "--auth-host=scram-sha-256",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
            ],
            user="postgres",
        )
        put_in_place(made, tables)
    write_private(tables / "postgresql.conf", postgresql_settings(layout, data), owner="postgres")
    write_private(tables / "pg_hba.conf", "local all postgres peer\nhost all all all scram-sha-256\n", owner="postgres")
    server = Daemon(
        name="postgresql",
        argv=(f"{binaries}/postgres", "-D", str(tables)),
        user="postgres",
        probe=Probe("tcp", f"{layout.address}:{PORTS['postgresql']}"),
        room=layout.controller_room,
        cwd=str(data),
        tier=STORES,
        stop_signal=2,
        start_seconds=90,
        stop_seconds=60,
    )
    return server.stamped(tables / "postgresql.conf")


def _create_postgresql_databases(stack: Stack) -> None:
    databases = owners(stack.layout)
    statements = [
        f"CREATE ROLE {user} LOGIN PASSWORD '{stack.secrets.password(f'db-{user}')}'"
        for user in sorted(set(databases.values()))
    ]
    statements += [f"CREATE DATABASE {database} OWNER {user}" for database, user in databases.items()]
    run_as_root(stack, "".join(f"{statement};\n" for statement in statements))


def _psql(stack: Stack) -> list[str]:
    data = stack.layout.data / "postgresql"
    return [f"{_binaries()}/psql", "-h", str(data), "-p", str(PORTS["postgresql"]), "-q", "postgres"]
