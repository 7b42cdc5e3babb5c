"""The two message buses of a daemon, and their transports.

Control daemons share one bus, on which every sender is trusted. Hosts and conductors share the other, on which every
message needs a proof (``nova/rpc/proofs.py``). RabbitMQ carries both (``nova/rpc/transport.py``). A process that is a
complete cloud carries them itself (``nova/rpc/in_process.py``).
"""

from __future__ import annotations

from nova.conf._options import Options
from nova.rpc.bus import AnyBus
from nova.rpc.client import Peers
from nova.rpc.hosts_url import CONFIGURED, HostsBroker
from nova.rpc.proofs import HostKeys
from nova.rpc.server import Take

#: Prefix of ``hosts_transport_url`` for a cloud in one process, which carries both buses itself. The rest is its name.
IN_PROCESS = "local://"


def control_bus(conf: Options, host: str, peers: Peers | None = None, timeout_s: int | None = None) -> AnyBus:
    """Return the control daemons' bus, for this daemon of ``host``. ``timeout_s``: maximum wait of ordinary calls, if
    less than ``rpc_response_timeout``."""
    if is_in_process(conf):
        from nova.rpc.in_process import InProcessBus

        return InProcessBus(conf, host, peers, timeout_s)
    from nova.rpc.transport import Bus

    return Bus(conf, host, peers, timeout_s)


def has_control_bus(conf: Options) -> bool:
    """Return whether nova.conf configures the control daemons' bus, for a daemon that does not require it."""
    if is_in_process(conf):
        return True
    from nova.rpc.transport import has_broker

    return has_broker(conf)


def hosts_bus(conf: Options, host: str, keys: HostKeys, conductor: bool = False, peers: Peers | None = None,
              take: Take | None = None, broker: HostsBroker = CONFIGURED) -> AnyBus:
    """Return the bus between hosts and conductors, for a daemon of ``host``; ``keys`` prove the sender. ``take``: for
    one of several conductors, as in :class:`nova.rpc.server.Receiver`. Raises config.Missing if the broker's
    URL is not set."""
    if is_in_process(conf):
        from nova.rpc.in_process import InProcessHostsBus

        return InProcessHostsBus(conf, host, keys, conductor, peers)
    from nova.rpc.transport import HostsBus

    return HostsBus(conf, host, keys, conductor, peers, take, broker)


def is_in_process(conf: Options) -> bool:
    """Return whether this process is a complete cloud, which needs no broker."""
    return (conf.hosts_transport_url or "").startswith(IN_PROCESS)
