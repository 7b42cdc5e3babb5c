"""The doctor's look at what holds security groups on a compute host of nova-network's."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from nova.cmd.doctor import BAD, OK, WARN, Finding


def packet_filter(options: Any, switches: Path | None = None) -> Finding:
    """``switches``: where the kernel says whether bridges ask iptables."""
    from nova.cmd.compute import packet_filters
    from nova.compute import flows
    from nova.compute.host_filter import BRIDGE_SWITCHES, CURE, unset
    from nova.conf.network import neutron_in_use
    from nova.service import CanNotStart

    if neutron_in_use(options):
        return Finding(OK, "security groups are Neutron's, whose agents filter")
    try:
        if packet_filters(options) is None:
            return Finding(OK, "nova-compute filters nothing here (compute_driver, firewall_driver, fake_network)")
    except CanNotStart as error:
        return Finding(BAD, error.message, "correct [DEFAULT]firewall_driver")
    missing = unset(switches or BRIDGE_SWITCHES)
    if missing:
        return Finding(BAD, f"security groups do not hold between guests on one bridge ({'; '.join(missing)}), and "
                            "nova-compute refuses to start guests", CURE)
    if shutil.which(flows.PROGRAM, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
        return Finding(WARN, "missing: conntrack: connections last when their rule is removed", "apt install conntrack")
    return Finding(OK, "bridges ask iptables: security groups hold between guests on one bridge, too")
