"""The two buses that a daemon may be on, and what carries them.

Control daemons meet on one, where everybody is believed; hosts and conductors on the other, where nothing counts
without a proof (``nova/rpc/proofs.py``). RabbitMQ carries both (``nova/rpc/transport.py``), or this process does, when
it is a whole cloud (``nova/rpc/in_process.py``).
"""

from __future__ import annotations

from nova.conf.base import Options
from nova.rpc.bus import AnyBus
from nova.rpc.client import Peers
from nova.rpc.proofs import HostKeys
from nova.rpc.server import Take

#: ``hosts_transport_url`` of a cloud that is one process: both buses are carried within it. What follows is its name.
IN_PROCESS = "local://"


def control_bus(conf: Options, host: str, peers: Peers | None = None, patience_s: int | None = None) -> AnyBus:
    """The bus of control daemons, for this one of ``host``. ``patience_s``: ordinary calls wait no longer, whatever
    ``rpc_response_timeout`` is."""
    if is_in_process(conf):
        from nova.rpc.in_process import InProcessBus

        return InProcessBus(conf, host, peers, patience_s)
    from nova.rpc.transport import Bus

    return Bus(conf, host, peers, patience_s)


def has_control_bus(conf: Options) -> bool:
    """Whether nova.conf says where the bus of control daemons is, for a daemon that can do without it."""
    if is_in_process(conf):
        return True
    from nova.rpc.transport import has_broker

    return has_broker(conf)


def hosts_bus(conf: Options, host: str, keys: HostKeys, conductor: bool = False, peers: Peers | None = None,
              take: Take | None = None, option: str = "") -> AnyBus:
    """The bus between hosts and conductors, for a daemon of ``host``; ``keys`` prove who speaks. ``take``: for a
    conductor beside others, as of :class:`nova.rpc.server.Receiver`. ``option``: with its URL; empty: the one of the
    security mode that the configuration asks for. config.Missing: it is not set."""
    if is_in_process(conf):
        from nova.rpc.in_process import InProcessHostsBus

        return InProcessHostsBus(conf, host, keys, conductor, peers)
    from nova.rpc.transport import HostsBus

    return HostsBus(conf, host, keys, conductor, peers, take, option)


def is_in_process(conf: Options) -> bool:
    """Whether this process is a whole cloud, which needs no broker."""
    return (conf.hosts_transport_url or "").startswith(IN_PROCESS)
