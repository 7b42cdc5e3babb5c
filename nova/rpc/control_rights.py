"""Names in the control daemons' vhost on the broker, and the permissions of each daemon's user.

Each daemon has a broker user with its program's name. Users in :data:`LIMITED` may call only the contracts that are
listed there. All other daemons act for users and administrators, and have all permissions in the vhost.

    nova-TOPIC           calls of a contract             -> queues ``TOPIC``, ``TOPIC.HOST``
    TOPIC_fanout         messages to all servers         -> ``TOPIC_fanout_*``
    nova-control-answers replies                         -> ``reply_*``
    the default exchange replies from unlimited users; through it a user reaches any queue

A limited user declares no shared exchange, and cannot bind a queue to an exchange that carries messages for others. Its
replies go through ``nova-control-answers``, because the default exchange would give it access to every queue.
"""

from __future__ import annotations

from typing import NamedTuple

VHOST = "nova"
ANSWERS = "nova-control-answers"
ALL = ".*"
NOTHING = "^$"


class DaemonRights(NamedTuple):
    """Topics of the contracts that a limited daemon may call, and of its own contract; empty: it serves none."""

    calls: tuple[str, ...]
    serves: str = ""


class TopicRights(NamedTuple):
    """Routing keys that a user may publish with, and bind its queues with, on one exchange."""

    exchange: str
    write: str
    read: str


CONSOLE_PROXIES = ("nova-novncproxy", "nova-spicehtml5proxy", "nova-serialproxy", "nova-xvpvncproxy")
_PROXY = DaemonRights(calls=("conductor-proxy", "consoleauth-check"))
#: By broker user, which has the program's name.
LIMITED: dict[str, DaemonRights] = {
    **dict.fromkeys(CONSOLE_PROXIES, _PROXY),
    "nova-scheduler": DaemonRights(calls=("conductor-scheduler",), serves="scheduler")}
#: Daemons that execute requests of users and administrators, or sign for them.
UNLIMITED = ("nova-conductor", "nova-api", "nova-api-os-compute", "nova-api-ec2", "nova-placement-api",
             "nova-consoleauth", "nova-cert", "nova-objectstore")
USERS = (*UNLIMITED, *LIMITED)
#: Topics whose queues a limited user can fill: the broker refuses a message beyond the bounds.
BOUNDED = frozenset(topic for rights in LIMITED.values() for topic in rights.calls)
BOUNDS = {"x-max-length": 1000, "x-max-length-bytes": 32 * 2 ** 20, "x-overflow": "reject-publish"}
#: Connections and channels of one limited user, which all machines with that daemon share.
LIMITS = {"max-connections": 200, "max-channels": 800}


def exchange(topic: str) -> str:
    """Return the exchange for calls of a contract between control daemons."""
    return f"nova-{topic}"


def permissions(user: str) -> dict[str, str]:
    """Return the configure, write and read patterns of that user, for ``rabbitmqctl set_permissions``."""
    if user not in LIMITED:
        return {"configure": ALL, "write": ALL, "read": ALL}
    replies, served = _replies(user), _served(LIMITED[user])
    answers = (ANSWERS,) if served else ()
    own = (*served, replies) if served else ()  # binding a queue needs the write permission on it
    return {"configure": _any(*served, replies),
            "write": _any(*(exchange(one) for one in LIMITED[user].calls), *answers, *own),
            "read": _any(*served, *answers, replies)}


def topic_rights(user: str) -> TopicRights | None:
    """Return the topic rights of a user that may bind to the exchange of all replies: with its own queue's name, and no
    pattern. None: it may bind to no shared exchange, or has all permissions."""
    if user not in LIMITED or not LIMITED[user].serves:
        return None
    return TopicRights(exchange=ANSWERS, write="^reply_", read=f"^{_replies(user)}$")


def _served(rights: DaemonRights) -> tuple[str, ...]:
    """Return patterns of the queues and exchanges of the contract that it serves."""
    topic = rights.serves
    return (exchange(topic), rf"{topic}(\..+|_fanout(_.+)?)?") if topic else ()


def _replies(user: str) -> str:
    return f"reply_{user}_[0-9a-f]+"


def _any(*patterns: str) -> str:
    return f"^({'|'.join(patterns)})$"
