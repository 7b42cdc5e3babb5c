"""Changes to the machine's own network: `up` creates the guests' bridge; `clean` removes it and nova's iptables
chains."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import StackError
from .layout import BRIDGE, GUEST_CIDR, GUEST_GATEWAY
from .stack import Stack

CHAIN = re.compile(r"(?<![\w-])nova-(filter-top|postrouting-bottom|(network|compute|api|api-meta)-[\w-]+)")
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
SPEAKS_NO_IPV6 = Path(f"/proc/sys/net/ipv6/conf/{BRIDGE}/disable_ipv6")
METADATA_ADDRESS = "169.254.169.254/32"
TABLES = ("filter", "nat", "mangle")


def prepare(stack: Stack) -> str:
    """Create the bridge with the gateway's address, where the metadata service listens; nova-network then uses it."""
    there = _ip("link", "show", "dev", BRIDGE).returncode == 0
    if there and not stack.done("bridge"):
        raise StackError(
            f"the machine has a bridge {BRIDGE} that bin/stack did not create",
            "rename or remove it, or avoid the conflict with `bin/stack up --sandbox`",
        )
    if not stack.done("bridge"):
        stack.mark_done("forwarding-before", FORWARDING.read_text().strip())
        stack.mark_done("bridge")
    address = f"{GUEST_GATEWAY}/{GUEST_CIDR.partition('/')[2]}"
    finished = there and GUEST_GATEWAY in _ip("address", "show", "dev", BRIDGE).stdout
    made = [] if there else [("link", "add", "name", BRIDGE, "type", "bridge", "forward_delay", "0")]
    # an `up` that was killed may have created only the bridge: the other commands can run again
    for command in (*made, ("address", "replace", address, "dev", BRIDGE), ("link", "set", BRIDGE, "up")):
        result = _ip(*command)
        if result.returncode:
            raise StackError(f"ip {' '.join(command)}: {result.stderr.strip()}")
        # otherwise guests reach services on [::]; later nova-network may have enabled IPv6 for guests' networks
        if SPEAKS_NO_IPV6.exists() and not finished:
            SPEAKS_NO_IPV6.write_text("1")
    return "unchanged" if there else f"{BRIDGE} {address}"


@dataclass(frozen=True)
class Outside:
    """The machine's default route: its interface, and the machine's address there."""

    interface: str
    address: str


def outside() -> Outside | None:
    routes = json.loads(_ip("-json", "-4", "route", "show", "default").stdout or "[]")
    if not routes:
        return None
    shown = json.loads(_ip("-json", "-4", "address", "show", "dev", routes[0]["dev"]).stdout or "[]")
    addresses = [info["local"] for row in shown for info in row.get("addr_info", []) if info.get("scope") == "global"]
    address = routes[0].get("prefsrc") or next(iter(addresses), None)
    return Outside(routes[0]["dev"], address) if address else None


def remove(stack: Stack) -> None:
    if stack.done("bridge"):
        _ip("link", "delete", "dev", BRIDGE)
        _ip("address", "delete", METADATA_ADDRESS, "dev", "lo")
        for table in TABLES:
            _remove_chains(table)
        if stack.done("forwarding-before", "0"):  # nova-network enables forwarding for guests' packets
            FORWARDING.write_text("0")


def without_chains(rules: str) -> str:
    """Return the iptables-save text without nova's chains and the rules that jump to them."""
    return "".join(line for line in rules.splitlines(keepends=True) if not CHAIN.search(line))


def _remove_chains(table: str) -> None:
    saved = subprocess.run(["iptables-save", "-t", table], capture_output=True, text=True, check=False)
    kept = without_chains(saved.stdout)
    if saved.returncode == 0 and kept != saved.stdout:
        subprocess.run(["iptables-restore", "-T", table], input=kept, text=True, capture_output=True, check=False)


def _ip(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
