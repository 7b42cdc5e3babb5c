"""A machine on which an installer finds what it installs nova beside: RabbitMQ, MariaDB, memcached, Keystone, Glance
and libvirt, all real; and what a tenant does at the end."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Mapping
from pathlib import Path

from stacklib.layout import PORTS, Choices, Layout
from tests.fresh.machine import Machine
from tests.fresh.trees import NEIGHBOURS_AT

#: Section -> option -> value, as a template renders it.
Options = Mapping[str, Mapping[str, object]]

UP_S, STEP_S, READY_S = 180.0, 300.0, 120.0
IMAGE = "tiny"
STACK = f"bin/stack --state {NEIGHBOURS_AT}"


class Site:
    """The neighbours run once it is made."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.layout = Layout(Path(NEIGHBOURS_AT), Choices(driver="fake", demo=False))
        machine.ok(f"{STACK} up --neighbours-only --driver fake --no-demo", UP_S)
        self._passwords: dict[str, str] = json.loads(machine.ok(f"cat {NEIGHBOURS_AT}/secrets.json"))

    # --- what an installer is told ------------------------------------------------------------------------------------
    def password(self, user: str) -> str:
        """Of a user of Keystone, or of the broker (``rabbit-USER``)."""
        return self._passwords[user]

    def url(self, service: str, path: str = "") -> str:
        """``keystone``, ``glance``, ``compute`` ..."""
        return self.layout.url(service, path)

    @property
    def broker_url(self) -> str:
        """The one ``transport_url`` that there is."""
        return f"rabbit://nova:{self.password('rabbit-nova')}@{self.broker_address}/nova"

    def broker(self, vhost: str) -> str:
        """The URL of a vhost, which is made where it is missing; ``nova`` is there."""
        ctl = f"HOME={NEIGHBOURS_AT}/data/rabbitmq ERL_EPMD_PORT={PORTS['epmd']} ERL_EPMD_ADDRESS=127.0.0.1 " \
              "/usr/lib/rabbitmq/bin/rabbitmqctl -q -n nova@localhost"  # with the node's cookie
        self.machine.ok(f"{ctl} list_vhosts | grep -qx {vhost} || {{ {ctl} add_vhost {vhost} && "
                        f"{ctl} set_permissions -p {vhost} nova '.*' '.*' '.*'; }}")
        return f"{self.broker_url.rpartition('/')[0]}/{vhost}"

    @property
    def broker_address(self) -> str:
        return f"127.0.0.1:{PORTS['amqp']}"

    @property
    def database_address(self) -> str:
        return f"127.0.0.1:{PORTS['mariadb']}"

    def database(self, name: str, user: str = "nova", password: str = "of-the-database") -> str:  # noqa: S107
        """Make it, and its user; its URL."""
        self.sql(f"CREATE DATABASE IF NOT EXISTS `{name}` CHARACTER SET utf8mb4;"
                 f"CREATE USER IF NOT EXISTS '{user}'@'%'; ALTER USER '{user}'@'%' IDENTIFIED BY '{password}';"
                 f"GRANT ALL PRIVILEGES ON `{name}`.* TO '{user}'@'%';")
        return f"mysql+pymysql://{user}:{password}@{self.database_address}/{name}?charset=utf8mb4"

    def sql(self, statements: str) -> str:
        """As the server's root."""
        socket = f"{NEIGHBOURS_AT}/data/mariadb/mariadb.sock"
        return self.machine.ok(f"mariadb --no-defaults -N --socket={socket} -u root -e {shlex.quote(statements)}")

    # --- files -------------------------------------------------------------------------------------------------------
    def write(self, path: str, text: str, owner: str = "root:root", mode: str = "0644") -> None:
        """A file of an installer's, in a folder that it makes where it is missing."""
        folder = path.rpartition("/")[0]
        self.machine.ok(f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {path} && "
                        f"chown {owner} {path} && chmod {mode} {path}")

    def ini(self, path: str, options: Options, owner: str = "root:root", mode: str = "0640") -> None:
        """The same, of sections and options."""
        self.write(path, rendered(options), owner, mode)

    # --- what a tenant does ------------------------------------------------------------------------------------------
    def openstack(self, words: str, seconds: float = 120) -> str:
        """What the real client prints, as the administrator."""
        return self.machine.ok(f". {NEIGHBOURS_AT}/openrc-admin; openstack --os-compute-api-version 2.90 {words}",
                               seconds)

    def boot(self, name: str) -> None:
        """``openstack server create``, with an image and a flavor that are made where they are missing."""
        self._prepare()
        self.openstack(f"server create --image {IMAGE} --flavor {IMAGE} --no-network --wait {name}", STEP_S)
        assert self.status(name) == "ACTIVE", self.openstack(f"server show {name}")

    def status(self, server: str) -> str:
        return self.openstack(f"server show -f value -c status {server}").strip()

    def _prepare(self) -> None:
        if IMAGE not in self.openstack("image list -f value -c Name").split():
            self.machine.ok("qemu-img create -q -f qcow2 /tmp/tiny.qcow2 1M")
            self.openstack(f"image create --file /tmp/tiny.qcow2 --disk-format qcow2 --public {IMAGE}")
        if IMAGE not in self.openstack("flavor list -f value -c Name").split():
            self.openstack(f"flavor create --ram 64 --disk 1 --vcpus 1 {IMAGE}")

    def logs(self) -> str:
        """For whoever reads why a scenario failed."""
        return self.machine.run("for file in /var/log/nova/*.log /var/log/apache2/*error.log; do test ! -s $file || "
                                "{ echo == $file; tail -n 30 $file | cut -c 1-600; }; done; "
                                "journalctl --no-pager -n 60").text

    # --- waiting -----------------------------------------------------------------------------------------------------
    def wait_for(self, command: str, words: str, seconds: float = READY_S, user: str = "") -> str:
        """Until the command prints words of that pattern; all that it prints then."""
        deadline = time.monotonic() + seconds
        while not re.search(words, (said := self.machine.run(command, 60, user)).text):
            assert time.monotonic() < deadline, f"{command}: no {words} after {seconds:.0f} s\n{said.last_words}"
            time.sleep(1)
        return said.text


def rendered(options: Options) -> str:
    """A list is an option that repeats."""
    lines: list[str] = []
    for section, values in options.items():
        lines.append(f"[{section}]")
        for name, value in values.items():
            lines += [f"{name} = {one}" for one in (value if isinstance(value, list) else [value])]
    return "\n".join(lines) + "\n"
