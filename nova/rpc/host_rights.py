"""The names of the hosts' vhost on the broker, and what a host's user may do with them.

Three kinds of exchanges, all of them declared by conductors; a host's user needs rights for no more than its own names:

    nova-conductor-host   calls of hosts              -> a queue for each host, ``calls.NAME``
    nova-answers          answers of hosts            -> conductors' reply queues
    nova-host-NAME        orders and answers to NAME  -> ``compute.NAME``, ``network.NAME``, ``reply_NAME_*``

A host's queue of calls is bounded, and so are its connections: a host that sends without end fills its own queue.
"""

from __future__ import annotations

import json
import re

VHOST = "nova-hosts"
CALLS, ANSWERS, HOST = "nova-conductor-host", "nova-answers", "nova-host-"
#: Where hosts of the release before send their calls, all of them to one queue.
SHARED_CALLS = "conductor-host"
_REPLY_QUEUE = re.compile(r"reply_(.+)_[0-9a-f]{32}")

#: What the broker user of a host may configure (declare and delete), write to and read from. To bind a queue takes
#: ``write`` on the queue and ``read`` on the exchange. {host}: its name, escaped for a pattern.
_QUEUES = r"(compute|network)\.{host}|reply_{host}_[0-9a-f]+"
PERMISSIONS = {"configure": rf"^({_QUEUES})$",
               "write": rf"^({CALLS}|{ANSWERS}|{_QUEUES})$",
               "read": rf"^({HOST}{{host}}|{_QUEUES})$"}
#: What it may write to the exchange CALLS, by routing key: without this, it could fill the queues of other hosts.
CALLS_KEY = r"^calls\.{host}$"
#: Connections and channels of one host's user. Its daemons have some ten of each, and more while orders come at once.
LIMITS = {"max-connections": 100, "max-channels": 400}
#: Of one message on the whole broker, in bytes (``max_message_size`` of rabbitmq.conf).
LARGEST_MESSAGE = 16 * 2 ** 20


def permissions(host: str) -> dict[str, str]:
    """Of that host's user: configure, write and read, as ``rabbitmqctl set_permissions`` takes them."""
    return {verb: pattern.replace("{host}", _escaped(host)) for verb, pattern in PERMISSIONS.items()}


def calls_key(host: str) -> str:
    """The pattern of routing keys that its user may write to :data:`CALLS`, as ``rabbitmqctl set_topic_permissions``
    takes it."""
    return CALLS_KEY.replace("{host}", _escaped(host))


def commands(host: str, vhost: str) -> list[list[str]]:
    """The words of each rabbitmqctl command that gives the host's user its rights."""
    user, patterns = f"host-{host}", permissions(host)
    return [["set_permissions", "-p", vhost, user, *(patterns[verb] for verb in ("configure", "write", "read"))],
            ["set_topic_permissions", "-p", vhost, user, CALLS, calls_key(host), "^$"],
            ["set_user_limits", user, json.dumps(LIMITS)]]


def calls_queue(host: str) -> str:
    """The queue of a host's calls, which is their routing key, too."""
    return f"calls.{host}"


def owner_of(reply_queue: str) -> str:
    """The host that a reply queue's name says it is of; empty: none."""
    found = _REPLY_QUEUE.fullmatch(reply_queue)
    return found[1] if found else ""


def _escaped(host: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else f"\\{c}" for c in host)
