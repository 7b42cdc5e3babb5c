"""Broker and databases of a test session: Debian's own, each a process of ours in a temporary folder on a free port.

Durability is switched off; nothing here outlives the session. Whoever starts one ends it, by its process group.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nova.rpc import control_rights
from nova.rpc.host_rights import CALLS, LARGEST_MESSAGE, LIMITS, calls_key, permissions

START_S = 90.0
VHOSTS = 32  # two a cloud, control daemons' and hosts': the queues of clouds never meet
HOSTS = tuple(f"host{number}" for number in range(1, 10))  # each with a broker user of its own, as in a real cloud


class Absent(Exception):
    """A package is missing; its name is the message."""


#: Below the ports that the kernel gives to clients: between our look and a server's bind, none of the other worker's
#: many connections can take what was found.
SERVER_PORTS = range(20000, 32000)
_ports = itertools.cycle(random.Random(os.getpid()).sample(SERVER_PORTS, len(SERVER_PORTS)))


def free_port() -> int:
    """A port nobody listens on, and that this process has not given before (but for a cycle of thousands)."""
    for port in _ports:
        with socket.socket() as sock, contextlib.suppress(OSError):
            sock.bind(("127.0.0.1", port))
            return port
    raise AssertionError("unreachable: the ports are a cycle")


def wait_until(what: str, condition: Callable[[], Any], seconds: float, pause: float = 0.05) -> Any:
    """The first truthy answer of ``condition``; AssertionError, with what was waited for, after ``seconds``."""
    until = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < until, f"{what}: not within {seconds:.0f} s (last answer: {answer!r})"
        time.sleep(pause)


def listening(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def program(package: str, *candidates: str) -> str:
    """The first candidate that is installed (paths or globs). Absent, naming the package."""
    for candidate in candidates:
        if found := shutil.which(candidate):
            return found
        if "*" in candidate and (matches := sorted(Path("/").glob(candidate.lstrip("/")))):
            return str(matches[-1])
    raise Absent(package)


class Process:
    """A process of ours and all its children: one group, so that ending it ends them."""

    def __init__(self, argv: Sequence[str], log: Path, env: Mapping[str, str] | None = None,
                 user: str | None = None, cwd: Path | None = None) -> None:
        # whatever becomes of us, it ends with us
        argv = [program("util-linux", "setpriv"), "--pdeathsig", "KILL", "--", *argv]
        with log.open("ab") as out:
            self.popen = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, user=user,
                group=user, extra_groups=[] if user else None, cwd=cwd, env=None if env is None else dict(env))
        self.log = log

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def end(self, seconds: float = 10.0) -> int:
        """SIGTERM to the process, SIGKILL to whatever of its group is left; the exit code."""
        if self.running:
            self.popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.popen.wait(seconds)
        self.kill()
        return self.popen.returncode

    def kill(self) -> None:
        """kill -9, the whole group."""
        self.signal(signal.SIGKILL)
        self.popen.wait(10)


def _account(name: str) -> str | None:
    """The account a server runs as: its own when we are root, ours otherwise."""
    return name if os.geteuid() == 0 else None


def _folder(root: Path, name: str, owner: str | None) -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    if owner:
        shutil.chown(folder, owner, owner)
    return folder


class Broker:
    """A RabbitMQ node with an epmd of its own. ``url(n)`` is vhost n's."""

    def __init__(self, root: Path) -> None:
        server = program("rabbitmq-server", "/usr/lib/rabbitmq/bin/rabbitmq-server")
        epmd = program("erlang-base", "epmd")
        self.port, self._dist, self._epmd_port = free_port(), free_port(), free_port()
        self._server, self._owner = server, _account("rabbitmq")
        self.folder = _folder(root, "rabbitmq", self._owner)
        self._write_settings()
        self._epmd = Process([epmd, "-address", "127.0.0.1", "-port", str(self._epmd_port)],
                             self.folder / "epmd.log", self.environment(), self._owner)
        self._used = 0
        self.node: Process | None = None

    def _write_settings(self) -> None:
        clouds, hosts = [f"cloud{number}" for number in range(VHOSTS)], [f"hosts{number}" for number in range(VHOSTS)]
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        (self.folder / "definitions.json").write_text(json.dumps({
            "vhosts": [{"name": name} for name in ("/", *clouds, *hosts)],
            "users": [{"name": "nova", "password": "nova", "tags": []},
                      *({"name": user, "password": "nova", "tags": [], "limits": control_rights.LIMITS}
                        for user in control_rights.LIMITED),
                      *({"name": user_of(host), "password": "nova", "tags": [], "limits": LIMITS} for host in HOSTS)],
            "permissions": [*({"user": "nova", "vhost": name, **everything} for name in ("/", *clouds, *hosts)),
                            *({"user": user, "vhost": name, **control_rights.permissions(user)}
                              for user in control_rights.LIMITED for name in clouds),
                            *({"user": user_of(host), "vhost": name, **permissions(host)}
                              for host in HOSTS for name in hosts)],
            "topic_permissions": [*({"user": user_of(host), "vhost": name, "exchange": CALLS, "write": calls_key(host),
                                     "read": "^$"} for host in HOSTS for name in hosts),
                                  *({"user": user, "vhost": name, **rights._asdict()}
                                    for user in control_rights.LIMITED if (rights := control_rights.topic_rights(user))
                                    for name in clouds)]}))
        (self.folder / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\nload_definitions = {self.folder}/definitions.json\n"
            "loopback_users = none\nlog.console = true\nlog.console.level = warning\nlog.file = false\n"
            f"disk_free_limit.absolute = 50MB\nmax_message_size = {LARGEST_MESSAGE}\n")
        (self.folder / "enabled_plugins").write_text("[].\n")

    def environment(self) -> dict[str, str]:
        """Of the node, and of rabbitmqctl for it."""
        folder = str(self.folder)
        return {
            "PATH": os.environ["PATH"], "HOME": folder, "LANG": "C.UTF-8",
            "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(self._epmd_port),
            "RABBITMQ_NODENAME": f"novatest{self.port}@localhost", "RABBITMQ_DIST_PORT": str(self._dist),
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf", "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/enabled_plugins", "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_CONF_ENV_FILE": "/dev/null", "RABBITMQ_PID_FILE": f"{folder}/pid",
            # schedulers that spin while they wait would take the tests' two CPUs
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "+sbwt none +sbwtdcpu none +sbwtdio none +S 2:2 -kernel inet_dist_use_interface {127,0,0,1}"}

    def start(self) -> None:
        """Start the node; returns at once (see :meth:`wait`)."""
        self.node = Process([self._server], self.folder / "node.log", self.environment(), self._owner, self.folder)

    def wait(self) -> None:
        wait_until("RabbitMQ answers", self._answers, START_S, 0.1)

    def _answers(self) -> bool:
        assert self.node and self.node.running, f"RabbitMQ ended: {(self.folder / 'node.log').read_text()[-2000:]}"
        if not listening(self.port):
            return False
        with socket.create_connection(("127.0.0.1", self.port), 5) as sock:
            sock.sendall(b"AMQP\x00\x00\x09\x01")
            return sock.recv(1) == b"\x01"  # connection.start: it takes clients

    def control(self, *words: str) -> None:
        """A command of rabbitmqctl."""
        subprocess.run(["/usr/lib/rabbitmq/bin/rabbitmqctl", "--quiet", *words], env=self.environment(), check=True,
                       stdout=subprocess.DEVNULL)

    def listed(self, *words: str) -> list[str]:
        """Lines of what a command of rabbitmqctl lists."""
        done = subprocess.run(["/usr/lib/rabbitmq/bin/rabbitmqctl", "--quiet", "--no-table-headers", *words],
                              env=self.environment(), check=True, capture_output=True, text=True)
        return done.stdout.splitlines()

    def stop(self) -> None:
        """As an operator stops it: its queues, which are not durable, are gone with it."""
        assert self.node
        self.node.end(30)

    def close(self) -> None:
        if self.node:
            self.node.kill()
        self._epmd.kill()

    def url(self) -> str:
        """A vhost nobody has used."""
        assert self._used < VHOSTS, "raise VHOSTS"
        self._used += 1
        return f"rabbit://nova:nova@127.0.0.1:{self.port}/cloud{self._used - 1}"


def hosts_vhost(url: str) -> str:
    """Beside the vhost of a cloud's control daemons."""
    return url.rsplit("/", 1)[1].replace("cloud", "hosts")


def user_of(host: str) -> str:
    return f"host-{host}" if host in HOSTS else "nova"


def hosts_url(url: str, host: str = "") -> str:
    """The hosts' vhost beside a cloud's own; ``host``: as that host's user."""
    return url.replace("/cloud", "/hosts").replace("nova:nova", f"{user_of(host)}:nova")


def daemon_url(url: str, user: str) -> str:
    """The vhost of a cloud's control daemons, as that daemon's own broker user."""
    return url.replace("nova:nova", f"{user}:nova")


class MariaDB:
    """``more``: options of the server."""

    scheme = "mysql+pymysql"

    def __init__(self, root: Path, more: Sequence[str] = ()) -> None:
        server = program("mariadb-server", "mariadbd", "/usr/sbin/mariadbd")
        install = program("mariadb-server", "mariadb-install-db")
        owner = _account("mysql")
        self.port, folder = free_port(), _folder(root, "mariadb", owner)
        (folder / "setup.sql").write_text("CREATE USER IF NOT EXISTS 'nova'@'%' IDENTIFIED BY 'nova';"
                                          "\nGRANT ALL PRIVILEGES ON *.* TO 'nova'@'%';\n")
        common, as_owner = ["--no-defaults", f"--datadir={folder}/data"], [f"--user={owner}"] if owner else []
        subprocess.run([install, *common, *as_owner, "--skip-test-db", "--skip-name-resolve",
                        "--auth-root-authentication-method=normal"], check=True, capture_output=True, timeout=120)
        self.process = Process(
            [server, *common, f"--socket={folder}/sock", f"--pid-file={folder}/pid", "--bind-address=127.0.0.1",
             f"--port={self.port}", f"--init-file={folder}/setup.sql", "--skip-name-resolve", "--skip-log-bin",
             "--max-connections=500", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M",
             "--innodb-doublewrite=0", "--performance-schema=off", *more], folder / "log", user=owner, cwd=folder)
        wait_until("MariaDB answers", self._answers, START_S)

    def _connect(self) -> Any:
        import pymysql

        return pymysql.connect(host="127.0.0.1", port=self.port, user="nova", password="nova")

    def _answers(self) -> bool:
        import pymysql

        assert self.process.running, f"MariaDB ended: {self.process.log.read_text()[-2000:]}"
        with contextlib.suppress(pymysql.MySQLError):
            self._connect().close()
            return True
        return False

    def create(self, name: str) -> str:
        connection = self._connect()
        connection.cursor().execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
        connection.close()
        return f"{self.scheme}://nova:nova@127.0.0.1:{self.port}/{name}"

    def close(self) -> None:
        self.process.kill()


class PostgreSQL:
    scheme = "postgresql+psycopg"

    def __init__(self, root: Path) -> None:
        server = program("postgresql", "/usr/lib/postgresql/*/bin/postgres")
        owner = _account("postgres")
        self.port, folder = free_port(), _folder(root, "postgresql", owner)
        subprocess.run([str(Path(server).with_name("initdb")), "-D", f"{folder}/data", "-U", "nova", "-A", "trust",
                        "-E", "UTF8", "--no-locale", "-N"], check=True, capture_output=True, timeout=120,
                       user=owner, group=owner, extra_groups=[] if owner else None, cwd=folder)
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off",
                    "full_page_writes": "off", "synchronous_commit": "off", "max_connections": "300"}
        self.process = Process([server, "-D", f"{folder}/data", "-p", str(self.port),
                                *(word for name, value in settings.items() for word in ("-c", f"{name}={value}"))],
                               Path(folder / "log"), user=owner, cwd=folder)
        wait_until("PostgreSQL answers", self._answers, START_S)

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(f"host=127.0.0.1 port={self.port} user=nova dbname=postgres", autocommit=True)

    def _answers(self) -> bool:
        import psycopg

        assert self.process.running, f"PostgreSQL ended: {self.process.log.read_text()[-2000:]}"
        with contextlib.suppress(psycopg.Error):
            self._connect().close()
            return True
        return False

    def create(self, name: str) -> str:
        with self._connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"{self.scheme}://nova@127.0.0.1:{self.port}/{name}"

    def close(self) -> None:
        self.process.kill()


class SQLite:
    def __init__(self, root: Path) -> None:
        self.folder = _folder(root, "sqlite", None)

    def create(self, name: str) -> str:
        return f"sqlite:///{self.folder}/{name}.db"

    def close(self) -> None:
        pass


KINDS: dict[str, Any] = {"mariadb": MariaDB, "postgresql": PostgreSQL, "sqlite": SQLite}


class Backends:
    """Started at first use, kept for the session."""

    def __init__(self, root: Path) -> None:
        root.chmod(0o755)
        self.root = root
        self._databases: dict[str, Any] = {}
        self._broker: Broker | None = None

    @property
    def broker(self) -> Broker:
        if self._broker is None:
            self._broker = Broker(self.root)
            self._broker.start()
            self._broker.wait()
        return self._broker

    def database(self, kind: str) -> Any:
        if kind not in self._databases:
            self._databases[kind] = self._started(kind)
        return self._databases[kind]

    def _started(self, kind: str) -> Any:
        """A database server in a folder of its own; one that does not come up is tried once more, in another."""
        first = self.root / "first"
        try:
            return KINDS[kind](first)
        except (AssertionError, subprocess.SubprocessError) as error:
            print(f"{kind} did not start, and is tried once more: {error}\n{getattr(error, 'stderr', '')}")
            return KINDS[kind](self.root / "second")

    def close(self) -> None:
        for backend in (*self._databases.values(), *([self._broker] if self._broker else [])):
            backend.close()
