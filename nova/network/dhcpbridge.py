"""nova-dhcpbridge: what dnsmasq calls for each lease. It touches neither database nor broker.

    nova-dhcpbridge add|old|del MAC ADDRESS [HOSTNAME]
    nova-dhcpbridge init

A lease is written to a file first and then nova-network on this host is told to look; when that is down, it finds
the file at its next start. ``init`` prints the leases of network NETWORK_ID, as nova-network knows them. Whatever
fails, the exit code is 0 and dnsmasq goes on: a guest's address does not depend on our being there.
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
    """The program. 2: it was not called as dnsmasq calls it."""
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
        pass  # a lease that was known before: nothing is new
    elif words[:1] in (["add"], ["del"]) and len(words) >= 3:
        _send(directory, _event(network, *words[:4]))
    elif words[:1] in (["add"], ["del"]) or not words:
        return _usage("words are missing")
    return 0  # other actions (tftp, arp-add, ..) are dnsmasq's to invent


def _event(network: str, action: str, mac: str, address: str, hostname: str | None = None) -> dict[str, object]:
    expires = os.environ.get("DNSMASQ_LEASE_EXPIRES", "")
    return {"network": network, "action": action, "mac": mac, "address": address, "hostname": hostname,
            "expires": int(expires) if expires.isdigit() else None}


def _send(directory: str, event: dict[str, object]) -> None:
    words: dict[str, object] = {"word": "look"}
    try:
        spool.append(directory, event)
    except OSError as error:
        sys.stderr.write(f"nova-dhcpbridge: {error}; the lease is told over the socket alone\n")
        words = {"word": "event", "event": event}
    with contextlib.suppress(OSError):  # nova-network is down: it looks when it starts
        spool.ask(directory, words, SEND_S)


def _init(directory: str, network: str) -> None:
    with contextlib.suppress(OSError):  # none known: guests that renew get the same addresses again
        sys.stdout.write(spool.ask(directory, {"word": "init", "network": network}, INIT_S))


def _usage(complaint: str) -> int:
    sys.stderr.write(f"nova-dhcpbridge: {complaint}\n{USAGE}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
