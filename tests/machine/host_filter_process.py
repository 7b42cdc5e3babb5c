"""Run inside a host's network namespace: applies a state (JSON on stdin) to its real packet filters."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from nova.compute.filter.host_filter import PacketFilters
from nova.compute.filter.packet_rules import RuleOptions
from nova.model.network.security_groups import HostFirewall
from nova.privileged.runner import SystemRunner

if __name__ == "__main__":
    filters = PacketFilters(SystemRunner(), Path(sys.argv[1]), RuleOptions(same_net="open" in sys.argv))
    print(filters.apply(msgspec.json.decode(sys.stdin.buffer.read(), type=HostFirewall)))
