"""nova-dhcpbridge: the program that dnsmasq calls for each lease. It uses neither the database nor the broker.

    nova-dhcpbridge add|old|del MAC ADDRESS [HOSTNAME]
    nova-dhcpbridge init

A lease is first written to a file; then nova-network on this host is notified. If nova-network is down, it finds the
file at its next start. ``init`` prints nova-network's leases of network NETWORK_ID. The exit code is 0 after any
failure, so that dnsmasq continues: a guest's address does not depend on nova-network.
"""

from __future__ import annotations

import contextlib
import os
import sys

from nova.network import spool
from nova.version import RELEASE

SEND_S, INIT_S = 2.0, 5.0
USAGE = "usage: nova-dhcpbridge add|old|del MAC ADDRESS [HOSTNAME] | init   (called by dnsmasq)"


def main(argv: list[str] | None = None) -> int:
    """Run the program. Returns 2 for a command line that dnsmasq would not use."""
    given = sys.argv[1:] if argv is None else argv
    if asked := {"--version", "--help", "-h"}.intersection(given):
        sys.stdout.write(f"{RELEASE if '--version' in asked else USAGE}\n")
        return 0
    words = [word for word in given if not word.startswith("--")]
    directory, network = os.environ.get("NOVA_NETWORKS_PATH"), os.environ.get("NETWORK_ID")
    if not directory or not network:
        return _usage("NOVA_NETWORKS_PATH and NETWORK_ID must be in the environment")
    if words[:1] == ["init"]:
        _init(directory, network)
    elif words[:1] == ["old"]:
        pass  # a known lease: there is no news
    elif words[:1] in (["add"], ["del"]) and len(words) >= 3:
        _send(directory, _event(network, *words[:4]))
    elif words[:1] in (["add"], ["del"]) or not words:
        return _usage("arguments are missing")
    return 0  # dnsmasq may call other actions (tftp, arp-add, ..): ignored


def _event(network: str, action: str, mac: str, address: str, hostname: str | None = None) -> dict[str, object]:
    expires = os.environ.get("DNSMASQ_LEASE_EXPIRES", "")
    return {"network": network, "action": action, "mac": mac, "address": address, "hostname": hostname,
            "expires": int(expires) if expires.isdigit() else None}


def _send(directory: str, event: dict[str, object]) -> None:
    words: dict[str, object] = {"word": "look"}
    try:
        spool.append(directory, event)
    except OSError as error:
        sys.stderr.write(f"nova-dhcpbridge: {error}; the lease is sent over the socket only\n")
        words = {"word": "event", "event": event}
    with contextlib.suppress(OSError):  # nova-network is down: it reads the spool when it starts
        spool.ask(directory, words, SEND_S)


def _init(directory: str, network: str) -> None:
    with contextlib.suppress(OSError):  # no leases known: guests that renew get the same addresses again
        sys.stdout.write(spool.ask(directory, {"word": "init", "network": network}, INIT_S))


def _usage(complaint: str) -> int:
    sys.stderr.write(f"nova-dhcpbridge: {complaint}\n{USAGE}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
