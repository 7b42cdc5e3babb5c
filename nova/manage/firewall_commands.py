"""``nova-manage firewall``: rules for traffic that every compute host drops before security groups apply."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from nova.manage.command import Command, ConductorOf, Table, argument
from nova.model.network.security_groups import NewSecurityRule
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]


def show(conductor: ConductorRPC, say: Say, table: Table) -> int:
    """Print a row for each rule, or a sentence if none exist."""
    found = conductor.list_provider_rules()
    if not found:
        say("No rules: no traffic is dropped before security groups apply.")
        return 0
    table(("id", "protocol", "from", "to", "range"),
          [(rule.id, rule.protocol, rule.from_port, rule.to_port, rule.cidr) for rule in found])
    return 0


def add(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """Add a rule; without ports it applies to the whole protocol."""
    everything = (1, 65535) if given.protocol in ("tcp", "udp") else (-1, -1)
    first = everything[0] if given.from_port is None else given.from_port
    last = (everything[1] if given.from_port is None else first) if given.to_port is None else given.to_port
    made = conductor.create_provider_rule(NewSecurityRule(
        group_id="", protocol=given.protocol, from_port=first, to_port=last, cidr=given.cidr))
    say(f"Rule {made.id}: {made.protocol} {made.from_port}:{made.to_port} from {made.cidr} is dropped on every host.")
    return 0


def remove(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """Remove a rule; returns after the hosts were updated. Raises NotFound if the rule does not exist."""
    conductor.delete_provider_rule(given.id)
    say(f"Rule {given.id} is removed.")
    return 0


def actions(conductor: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Return the rows of nova-manage's command table."""
    return {
        "list": Command(lambda options, given: show(conductor(options), say, table),
                        "list the rules that drop traffic on every compute host, regardless of security groups "
                        "(nova-network)"),
        "add": Command(lambda options, given: add(conductor(options), given, say), "add a rule that drops traffic", (
            argument("--protocol", required=True, choices=("tcp", "udp", "icmp", "icmpv6")),
            argument("--from_port", type=int, help="first port, or the ICMP type (default: all of the protocol)"),
            argument("--to_port", type=int, help="last port, or the ICMP code (default: only from_port)"),
            argument("--cidr", default="0.0.0.0/0", help="source of the traffic (default: any)"))),
        "remove": Command(lambda options, given: remove(conductor(options), given, say), "remove a rule", (
            argument("id"),)),
    }
