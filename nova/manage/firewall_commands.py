"""``nova-manage firewall``: what every compute host drops before its guests' security groups are asked."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from nova.manage.command import Command, ConductorOf, argument
from nova.model.network.security_groups import NewSecurityRule
from nova.rpc.contracts.conductor import ConductorRPC

Say = Callable[[str], None]
Table = Callable[[Sequence[str], Sequence[Sequence[Any]]], None]


def show(conductor: ConductorRPC, say: Say, table: Table) -> int:
    """A row for each rule; a sentence when there is none."""
    found = conductor.list_provider_rules()
    if not found:
        say("Nothing is dropped before the security groups are asked.")
        return 0
    table(("id", "protocol", "from", "to", "range"),
          [(rule.id, rule.protocol, rule.from_port, rule.to_port, rule.cidr) for rule in found])
    return 0


def add(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """Ports are left out for all of a protocol."""
    everything = (1, 65535) if given.protocol in ("tcp", "udp") else (-1, -1)
    first = everything[0] if given.from_port is None else given.from_port
    last = (everything[1] if given.from_port is None else first) if given.to_port is None else given.to_port
    made = conductor.create_provider_rule(NewSecurityRule(
        group_id="", protocol=given.protocol, from_port=first, to_port=last, cidr=given.cidr))
    say(f"Rule {made.id}: {made.protocol} {made.from_port}:{made.to_port} from {made.cidr} is dropped on every host.")
    return 0


def remove(conductor: ConductorRPC, given: argparse.Namespace, say: Say) -> int:
    """NotFound: there is no such rule. Done when the hosts were told."""
    conductor.delete_provider_rule(given.id)
    say(f"Rule {given.id} is gone.")
    return 0


def actions(conductor: ConductorOf, say: Say, table: Table) -> dict[str, Command]:
    """Rows for the table of commands, of nova-manage's own making."""
    return {
        "list": Command(lambda options, given: show(conductor(options), say, table),
                        "what is dropped on every compute host, whatever security groups say (nova-network)"),
        "add": Command(lambda options, given: add(conductor(options), given, say), "drop something more", (
            argument("--protocol", required=True, choices=("tcp", "udp", "icmp", "icmpv6")),
            argument("--from_port", type=int, help="or the type of ICMP; left out: all of the protocol"),
            argument("--to_port", type=int, help="or the code of ICMP; left out: from_port alone"),
            argument("--cidr", default="0.0.0.0/0", help="where it comes from; left out: anywhere"))),
        "remove": Command(lambda options, given: remove(conductor(options), given, say), "do not drop it any more", (
            argument("id"),)),
    }
