"""RabbitMQ: a node of our own, its users and their permissions given as definitions that it loads at start."""

from __future__ import annotations

import base64
import hashlib
import json

from .layout import PORTS, Compute, Layout, write_private
from .secrets import Secrets
from .spec import STORES, Daemon, Probe
from .stack import Stack

VHOST = "nova"
CONTROL_USER = "nova"
OWNER = "rabbitmq"
NEUTRON = "neutron"  # a user and a vhost: it meets nothing of nova's
# an idle Erlang scheduler that spins would take from the guests the little CPU there is
CALM = "+sbwt none +sbwtdcpu none +sbwtdio none"

# What a broker user may configure (declare), write to and read from; {host} is the compute host's name, escaped.
# To bind a queue takes `write` on the queue and `read` on the exchange; to publish, `write` on the exchange.
# A host publishes to the conductors' exchange for hosts and to nothing else but the default exchange, by which
# oslo.messaging sends every reply. That one reaches any queue by its name: an order forged so has no valid proof.
# The queue `compute`, which all hosts declare and nobody sends to, comes with oslo.messaging's servers.
_QUEUES = r"(compute|network)(\.{host}|_fanout_.+)?"
_OWN = r"nova-host-{host}|(compute|network)_fanout"
PERMISSIONS = {
    "control": {"configure": ".*", "write": ".*", "read": ".*"},
    "host": {
        "configure": rf"^(nova-conductor-host|{_OWN}|{_QUEUES}|reply_.+)$",
        "write": rf"^(nova-conductor-host|amq\.default|{_QUEUES}|reply_.+)$",
        "read": rf"^({_OWN}|{_QUEUES}|reply_.+)$",
    },
}


def transport_url(layout: Layout, secrets: Secrets, compute: Compute | None = None) -> str:
    user = compute.broker_user if compute else CONTROL_USER
    return f"rabbit://{user}:{secrets.password(f'rabbit-{user}')}@{layout.address}:{PORTS['amqp']}/{VHOST}"


def neutron_url(layout: Layout, secrets: Secrets) -> str:
    password = secrets.password(f"rabbit-{NEUTRON}")
    return f"rabbit://{NEUTRON}:{password}@{layout.address}:{PORTS['amqp']}/{NEUTRON}"


def password_hash(password: str, salt: bytes) -> str:
    """RabbitMQ's rabbit_password_hashing_sha256: base64 of a salt of 4 bytes and of SHA-256 over salt and password."""
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def permissions(kind: str, host: str = "") -> dict[str, str]:
    escaped = "".join(c if c.isalnum() or c in "-_" else f"\\{c}" for c in host)
    return {verb: pattern.replace("{host}", escaped) for verb, pattern in PERMISSIONS[kind].items()}


def definitions(layout: Layout, secrets: Secrets) -> dict:
    users = {CONTROL_USER: permissions("control")}
    for compute in layout.computes:
        users[compute.broker_user] = permissions("host", compute.name)
    vhosts = dict.fromkeys(users, VHOST)
    if layout.choices.neutron:
        users[NEUTRON], vhosts[NEUTRON] = permissions("control"), NEUTRON
    return {
        "vhosts": [{"name": vhost} for vhost in dict.fromkeys(vhosts.values())],
        "users": [
            {
                "name": user,
                "tags": [],
                "hashing_algorithm": "rabbit_password_hashing_sha256",
                "password_hash": _hash(secrets, user),
            }
            for user in users
        ],
        "permissions": [{"user": user, "vhost": vhosts[user], **rights} for user, rights in users.items()],
    }


def _hash(secrets: Secrets, user: str) -> str:
    salt = hashlib.sha256(secrets.password(f"rabbit-salt-{user}").encode()).digest()[:4]
    return password_hash(secrets.password(f"rabbit-{user}"), salt)


def settings(layout: Layout) -> str:
    # without a name of its own the node asks DNS for this machine's at each connection: one that nobody answers for
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
"""


def daemons(stack: Stack) -> list[Daemon]:
    """Write the files; epmd first, so that the node finds ours and starts none of its own."""
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
