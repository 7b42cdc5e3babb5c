"""RabbitMQ: the stack's own node; it loads its users and their permissions as definitions at its start."""

from __future__ import annotations

import base64
import hashlib
import json
import sys

from .layout import CHECKOUT, FIRST, PORTS, Cell, Layout, broker_user, write_private
from .secrets import Secrets
from .spec import STORES, Daemon, Probe
from .stack import Stack

sys.path.insert(1, str(CHECKOUT))  # before a nova that the machine may have installed

from nova.rpc import control_rights, host_rights  # noqa: E402

VHOST, HOSTS_VHOST = control_rights.VHOST, host_rights.VHOST
CONTROL_USER = "nova"  # has all permissions: for daemons of releases in which daemons had no users of their own
CONDUCTOR = "nova-conductor"
OWNER = "rabbitmq"
NEUTRON, CINDER = "neutron", "cinder"  # each has its own user and vhost, without access to nova's
# no busy waiting: idle Erlang schedulers that spin would take CPU time from the guests
CALM = "+sbwt none +sbwtdcpu none +sbwtdio none"

EVERYTHING = {"configure": ".*", "write": ".*", "read": ".*"}


def transport_url(layout: Layout, secrets: Secrets, user: str = CONTROL_USER) -> str:
    """Return the URL of the control daemons' vhost, with a daemon's user."""
    return _url(layout, secrets, user, VHOST)


def hosts_transport_url(
    layout: Layout, secrets: Secrets, host: str = "", user: str = CONTROL_USER, cell: Cell = FIRST
) -> str:
    """Return the URL of the vhost of a cell's hosts and conductors, with that host's user or the conductors'."""
    return _url(layout, secrets, broker_user(host) if host else user, cell.own(HOSTS_VHOST))


def cell_url(layout: Layout, secrets: Secrets, cell: Cell) -> str:
    """Return the URL by which the conductors of a further cell, and the super conductor, reach its hosts."""
    return hosts_transport_url(layout, secrets, user=cell.own(CONDUCTOR), cell=cell)


def _url(layout: Layout, secrets: Secrets, user: str, vhost: str) -> str:
    return f"rabbit://{user}:{secrets.password(f'rabbit-{user}')}@{layout.address}:{PORTS['amqp']}/{vhost}"


def neutron_url(layout: Layout, secrets: Secrets) -> str:
    return _url(layout, secrets, NEUTRON, NEUTRON)


def cinder_url(layout: Layout, secrets: Secrets) -> str:
    return _url(layout, secrets, CINDER, CINDER)


def password_hash(password: str, salt: bytes) -> str:
    """Return RabbitMQ's rabbit_password_hashing_sha256: base64 of a 4-byte salt and of SHA-256 of salt and password."""
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def definitions(layout: Layout, secrets: Secrets) -> dict:
    """Return the definitions that RabbitMQ loads. A daemon's user has the daemon's permissions; a host's user has
    permissions only in the hosts' vhost."""
    rights = [(CONTROL_USER, VHOST, EVERYTHING), (CONTROL_USER, HOSTS_VHOST, EVERYTHING)]
    rights += [(user, VHOST, control_rights.permissions(user)) for user in control_rights.USERS]
    rights += [(cell.own(CONDUCTOR), cell.own(HOSTS_VHOST), EVERYTHING) for cell in layout.cells]
    hosts = {broker_user(layout.controller_host): (layout.controller_host, HOSTS_VHOST)}
    hosts |= {one.broker_user: (one.name, one.cell.own(HOSTS_VHOST)) for one in layout.computes}
    rights += [(user, vhost, host_rights.permissions(name)) for user, (name, vhost) in hosts.items()]
    if layout.choices.neutron:
        rights.append((NEUTRON, NEUTRON, EVERYTHING))
    if layout.choices.volumes:
        rights.append((CINDER, CINDER, EVERYTHING))
    return {
        "vhosts": [{"name": vhost} for vhost in dict.fromkeys(vhost for _user, vhost, _patterns in rights)],
        "users": [
            {
                "name": user,
                "tags": [],
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "password_hash": _hash(secrets, user),
                **({"limits": host_rights.LIMITS} if user in hosts else {}),
                **({"limits": control_rights.LIMITS} if user in control_rights.LIMITED else {}),
            }
            for user in dict.fromkeys(user for user, _vhost, _patterns in rights)
        ],
        "permissions": [{"user": user, "vhost": vhost, **patterns} for user, vhost, patterns in rights],
        "topic_permissions": [
            {
                "user": user,
                "vhost": vhost,
                "exchange": host_rights.CALLS,
                "write": host_rights.calls_key(name),
                "read": "^$",
            }
            for user, (name, vhost) in hosts.items()
        ]
        + [
            {"user": user, "vhost": VHOST, **topics._asdict()}
            for user in control_rights.LIMITED
            if (topics := control_rights.topic_rights(user))
        ],
    }


def _hash(secrets: Secrets, user: str) -> str:
    salt = hashlib.sha256(secrets.password(f"rabbit-salt-{user}").encode()).digest()[:4]
    return password_hash(secrets.password(f"rabbit-{user}"), salt)


def settings(layout: Layout) -> str:
    # without a cluster name, the node looks up this machine's name in DNS at each connection: without an answer, this
    # takes longer than a client waits
    return f"""\
cluster_name = nova
listeners.tcp.1 = {layout.address}:{PORTS["amqp"]}
load_definitions = {layout.etc}/rabbitmq/definitions.json
loopback_users = none
log.console = true
log.console.level = info
log.file = false
disk_free_limit.absolute = 200MB
vm_memory_high_watermark.relative = 0.4
max_message_size = {host_rights.LARGEST_MESSAGE}
"""


def daemons(stack: Stack) -> list[Daemon]:
    """Write the files and return the daemons, epmd first: the node then finds it and does not start its own."""
    layout = stack.layout
    stack.directory("etc", "rabbitmq", owner=OWNER)
    home = stack.directory("data", "rabbitmq", owner=OWNER)
    etc = layout.etc / "rabbitmq"
    write_private(etc / "definitions.json", json.dumps(definitions(layout, stack.secrets), indent=1), owner=OWNER)
    write_private(etc / "rabbitmq.conf", settings(layout), owner=OWNER)
    write_private(etc / "enabled_plugins", "[].\n", owner=OWNER)
    address = layout.address.replace(".", ",")
    node_host = "controller" if layout.sandbox else "localhost"
    erlang = {"HOME": str(home), "ERL_EPMD_ADDRESS": layout.address, "ERL_EPMD_PORT": str(PORTS["epmd"])}
    node = {
        **erlang,
        "RABBITMQ_NODENAME": f"nova@{node_host}",
        "RABBITMQ_NODE_IP_ADDRESS": layout.address,
        "RABBITMQ_NODE_PORT": str(PORTS["amqp"]),
        "RABBITMQ_DIST_PORT": str(PORTS["erlang"]),
        "RABBITMQ_CONFIG_FILE": str(etc / "rabbitmq.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(etc / "enabled_plugins"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(etc / "advanced.config"),
        "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
        "RABBITMQ_LOG_BASE": str(home / "log"),
        "RABBITMQ_PID_FILE": str(home / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": f"-kernel inet_dist_use_interface {{{address}}} {CALM}",
    }
    epmd = Daemon(
        name="epmd",
        argv=("/usr/bin/epmd", "-address", layout.address, "-port", str(PORTS["epmd"])),
        probe=Probe("tcp", f"{layout.address}:{PORTS['epmd']}"),
        room=layout.controller_room,
        user=OWNER,
        env=erlang,
        cwd=str(home),
        tier=STORES - 1,
    )
    broker = Daemon(
        name="rabbitmq",
        argv=("/usr/lib/rabbitmq/bin/rabbitmq-server",),
        env=node,
        cwd=str(home),
        probe=Probe("tcp", f"{layout.address}:{PORTS['amqp']}"),
        room=layout.controller_room,
        user=OWNER,
        tier=STORES,
        start_seconds=120,
        stop_seconds=30,
    )
    return [epmd.stamped(), broker.stamped(etc / "definitions.json", etc / "rabbitmq.conf")]
