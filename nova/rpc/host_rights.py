"""The names of the hosts' vhost on the broker, and what a host's user may do with them.

Three kinds of exchanges, all of them declared by conductors; a host's user needs rights for no more than its own names:

    nova-conductor-host   calls of hosts              -> the queue ``conductor-host``
    nova-answers          answers of hosts            -> conductors' reply queues
    nova-host-NAME        orders and answers to NAME  -> ``compute.NAME``, ``network.NAME``, ``reply_NAME_*``
"""

from __future__ import annotations

import re

VHOST = "nova-hosts"
CALLS, ANSWERS, HOST = "nova-conductor-host", "nova-answers", "nova-host-"
_REPLY_QUEUE = re.compile(r"reply_(.+)_[0-9a-f]{32}")

#: What the broker user of a host may configure (declare and delete), write to and read from. To bind a queue takes
#: ``write`` on the queue and ``read`` on the exchange. {host}: its name, escaped for a pattern.
_QUEUES = r"(compute|network)\.{host}|reply_{host}_[0-9a-f]+"
PERMISSIONS = {"configure": rf"^({_QUEUES})$",
               "write": rf"^({CALLS}|{ANSWERS}|{_QUEUES})$",
               "read": rf"^({HOST}{{host}}|{_QUEUES})$"}


def permissions(host: str) -> dict[str, str]:
    """Of that host's user: configure, write and read, as ``rabbitmqctl set_permissions`` takes them."""
    escaped = "".join(c if c.isalnum() or c in "-_" else f"\\{c}" for c in host)
    return {verb: pattern.replace("{host}", escaped) for verb, pattern in PERMISSIONS.items()}


def owner_of(reply_queue: str) -> str:
    """The host that a reply queue's name says it is of; empty: none."""
    found = _REPLY_QUEUE.fullmatch(reply_queue)
    return found[1] if found else ""
