"""Names in the hosts' vhost on the broker, and the permissions of a host's user.

Conductors declare all exchanges, which are of three kinds. A host's user needs rights for its own names only:

    nova-conductor-host   calls from hosts               -> a queue for each host, ``calls.NAME``
    nova-answers          replies from hosts             -> conductors' reply queues
    nova-host-NAME        orders for NAME and its replies -> ``compute.NAME``, ``network.NAME``, ``reply_NAME_*``

A host's queue of calls and its number of connections are limited: a host that sends without end fills only its own
queue.
"""

from __future__ import annotations

import json
import re

VHOST = "nova-hosts"
CALLS, ANSWERS, HOST = "nova-conductor-host", "nova-answers", "nova-host-"
#: The one queue to which hosts of the previous release send their calls.
SHARED_CALLS = "conductor-host"
_REPLY_QUEUE = re.compile(r"reply_(.+)_[0-9a-f]{32}")

#: The names that a host's broker user may configure (declare and delete), write to and read from. Binding a queue needs
#: ``write`` on the queue and ``read`` on the exchange. {host}: its name, escaped for a pattern.
_QUEUES = r"(compute|network)\.{host}|reply_{host}_[0-9a-f]+"
PERMISSIONS = {"configure": rf"^({_QUEUES})$",
               "write": rf"^({CALLS}|{ANSWERS}|{_QUEUES})$",
               "read": rf"^({HOST}{{host}}|{_QUEUES})$"}
#: Routing keys that it may use on the exchange CALLS: without this limit, it could fill the queues of other hosts.
CALLS_KEY = r"^calls\.{host}$"
#: Connections and channels of one host's user. Its daemons have about ten of each, and more while many orders run.
LIMITS = {"max-connections": 100, "max-channels": 400}
#: The maximum size of a message on the whole broker, in bytes (``max_message_size`` of rabbitmq.conf).
LARGEST_MESSAGE = 16 * 2 ** 20


def permissions(host: str) -> dict[str, str]:
    """Return the configure, write and read patterns of that host's user, for ``rabbitmqctl set_permissions``."""
    return {verb: pattern.replace("{host}", _escaped(host)) for verb, pattern in PERMISSIONS.items()}


def calls_key(host: str) -> str:
    """Return the pattern of routing keys that the host's user may use on :data:`CALLS`, for ``rabbitmqctl
    set_topic_permissions``."""
    return CALLS_KEY.replace("{host}", _escaped(host))


def commands(host: str, vhost: str) -> list[list[str]]:
    """Return the arguments of each rabbitmqctl command that gives the host's user its permissions."""
    user, patterns = f"host-{host}", permissions(host)
    return [["set_permissions", "-p", vhost, user, *(patterns[verb] for verb in ("configure", "write", "read"))],
            ["set_topic_permissions", "-p", vhost, user, CALLS, calls_key(host), "^$"],
            ["set_user_limits", user, json.dumps(LIMITS)]]


def calls_queue(host: str) -> str:
    """Return the name of the queue of a host's calls, which is also their routing key."""
    return f"calls.{host}"


def owner_of(reply_queue: str) -> str:
    """Return the host in the name of a reply queue; empty if there is none."""
    found = _REPLY_QUEUE.fullmatch(reply_queue)
    return found[1] if found else ""


def _escaped(host: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else f"\\{c}" for c in host)
