"""The names of the control daemons' vhost on the broker, and what a daemon's user may do with them.

Each daemon has a broker user of its program's name. Those of :data:`LIMITED` may call the contracts that are named
there, and nothing else; the others act for users and administrators, and may do everything in the vhost.

    nova-TOPIC           calls of a contract     -> queues ``TOPIC``, ``TOPIC.HOST``
    TOPIC_fanout         what all servers hear   -> ``TOPIC_fanout_*``
    nova-control-answers answers                 -> ``reply_*``
    the default exchange answers, from who may do everything; by it a user reaches any queue

A limited user declares no exchange that others use, and binds no queue to one by which it would hear what is not its
own. Its answers go through ``nova-control-answers``, since the default exchange would open every queue to it.
"""

from __future__ import annotations

from typing import NamedTuple

VHOST = "nova"
ANSWERS = "nova-control-answers"
ALL = ".*"
NOTHING = "^$"


class DaemonRights(NamedTuple):
    """Topics of the contracts that a limited daemon may call, and of the one that it serves; empty: none."""

    calls: tuple[str, ...]
    serves: str = ""


class TopicRights(NamedTuple):
    """Routing keys that a user may write by, and bind its queues with, on one exchange."""

    exchange: str
    write: str
    read: str


CONSOLE_PROXIES = ("nova-novncproxy", "nova-spicehtml5proxy", "nova-serialproxy", "nova-xvpvncproxy")
_PROXY = DaemonRights(calls=("conductor-proxy", "consoleauth-check"))
#: By broker user, which is named like the program.
LIMITED: dict[str, DaemonRights] = {
    **dict.fromkeys(CONSOLE_PROXIES, _PROXY),
    "nova-scheduler": DaemonRights(calls=("conductor-scheduler",), serves="scheduler")}
#: Those that do what users and administrators ask, or sign for them.
UNLIMITED = ("nova-conductor", "nova-api", "nova-api-os-compute", "nova-api-ec2", "nova-placement-api",
             "nova-consoleauth", "nova-cert", "nova-objectstore")
USERS = (*UNLIMITED, *LIMITED)
#: Topics of whose queues a limited user can fill: a message beyond the bounds is refused to its sender.
BOUNDED = frozenset(topic for rights in LIMITED.values() for topic in rights.calls)
BOUNDS = {"x-max-length": 1000, "x-max-length-bytes": 32 * 2 ** 20, "x-overflow": "reject-publish"}
#: Connections and channels of one limited user: all machines with that daemon share it.
LIMITS = {"max-connections": 200, "max-channels": 800}


def exchange(topic: str) -> str:
    """Where calls of a contract between control daemons go."""
    return f"nova-{topic}"


def permissions(user: str) -> dict[str, str]:
    """Configure, write and read of that user, as ``rabbitmqctl set_permissions`` takes them."""
    if user not in LIMITED:
        return {"configure": ALL, "write": ALL, "read": ALL}
    replies, served = _replies(user), _served(LIMITED[user])
    answers = (ANSWERS,) if served else ()
    own = (*served, replies) if served else ()  # a queue that is bound is written to
    return {"configure": _any(*served, replies),
            "write": _any(*(exchange(one) for one in LIMITED[user].calls), *answers, *own),
            "read": _any(*served, *answers, replies)}


def topic_rights(user: str) -> TopicRights | None:
    """Of a user that may bind to the exchange of all answers: with its own queue's name, and no pattern. None: it may
    bind to no exchange that others use, or everything is allowed."""
    if user not in LIMITED or not LIMITED[user].serves:
        return None
    return TopicRights(exchange=ANSWERS, write="^reply_", read=f"^{_replies(user)}$")


def _served(rights: DaemonRights) -> tuple[str, ...]:
    """Queues and exchanges of the contract that it serves."""
    topic = rights.serves
    return (exchange(topic), rf"{topic}(\..+|_fanout(_.+)?)?") if topic else ()


def _replies(user: str) -> str:
    return f"reply_{user}_[0-9a-f]+"


def _any(*patterns: str) -> str:
    return f"^({'|'.join(patterns)})$"
