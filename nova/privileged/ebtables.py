"""Management of nova's own chains in ebtables, the rules for frames on bridges; like :mod:`nova.privileged.iptables`.

Rules are texts as ebtables-save prints them (``-p IPv4 -i eth0 --ip-proto udp --ip-dport 67:68 -j DROP``); a default
target is omitted: ``-j redirect``. Nova's chains end with policy RETURN; ebtables' own default for a new chain would
accept all other frames. Each nova program has chains of its own, named after it; other chains are not changed. Debian's
ebtables is that of the package iptables (nf_tables), whose restore is one transaction.
"""

from __future__ import annotations

from pathlib import Path

from nova.privileged.iptables import ETHERNET, PacketFilter
from nova.privileged.runner import CommandRunner

LOCK = "ebtables.lock"  # in state_path: shared by all nova programs on the host


def frame_filter(runner: CommandRunner, state_path: Path) -> PacketFilter:
    """Return a filter for frames. Its tables should be ``sparse``, so that no empty chains are made on hosts without
    such rules."""
    return PacketFilter(runner, state_path / LOCK, dialect=ETHERNET)
