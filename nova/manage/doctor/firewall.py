"""Doctor check of the packet filter that enforces security groups on a compute host with nova-network."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from nova import errors
from nova.conf._options import Options
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, is_host


def kept_elsewhere(options: Options) -> bool:
    """True if the network backend filters packets. A compute host asks the conductor, because its own configuration
    file does not decide it. Raises NovaError if the conductor does not answer."""
    from nova.conf.network import neutron_in_use
    from nova.manage.doctor.services import the_bus
    from nova.rpc.contracts.conductor_host import ConductorHostRPC

    if not is_host(options):
        return neutron_in_use(options)
    bus, _option = the_bus(options)
    return bus.client(ConductorHostRPC).host_firewall(options.host).kept_elsewhere


def packet_filter(options: Options, switches: Path | None = None, elsewhere: Callable[[Options], bool] = kept_elsewhere
                  ) -> Finding:
    """Check that security groups are enforced. ``switches``: the kernel's directory of the bridge-nf-call settings."""
    from nova.conf.network import neutron_in_use

    in_use = written = neutron_in_use(options)
    with contextlib.suppress(errors.NovaError):
        in_use = elsewhere(options)
    found = Finding(OK, "Neutron's agents enforce security groups") if in_use else _ours(options, switches)
    if in_use != written and found.state == OK:
        return Finding(WARN, f"{found.what}; but [DEFAULT]use_neutron = {str(written).lower()} on this host",
                       f"set it to {str(in_use).lower()}: nova-compute follows the conductors, but other programs may "
                       "not")
    return found


def _ours(options: Options, switches: Path | None) -> Finding:
    from nova.cmd.compute import packet_filters
    from nova.compute.filter import flows
    from nova.compute.filter.host_filter import CURE
    from nova.privileged.kernel_switches import BRIDGE_SWITCHES, unset

    try:
        if packet_filters(options) is None:
            return Finding(OK, "nova-compute filters nothing here (compute_driver, firewall_driver, fake_network)")
    except errors.config.Wrong as error:
        return Finding(BAD, error.message, "correct it in nova.conf")
    missing = unset(switches or BRIDGE_SWITCHES)
    if missing:
        return Finding(BAD, f"security groups are not enforced between guests on one bridge ({'; '.join(missing)}), so "
                       "nova-compute refuses to start guests", CURE)
    if shutil.which(flows.PROGRAM, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
        return Finding(WARN, "missing: conntrack: connections outlive the removal of their rule",
                       "apt install conntrack")
    return Finding(OK, "bridges use iptables: security groups are enforced between guests on one bridge, too")
