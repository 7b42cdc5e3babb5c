"""Calls for packet filters: nova's own chains, and jumps to them. Rules of others can be neither read, changed nor
removed.

A rule consists of words of a closed set and of plain values. It cannot name a module or a file, and jumps only to a
verdict or to a chain of nova's.
"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

from nova.privileged.ebtables import LOCK as FRAMES_LOCK
from nova.privileged.helper.calling import HelperCall, call
from nova.privileged.iptables import DIALECTS, LOCK, PacketFilter, Table

Program = Annotated[str, Meta(pattern=r"\A(iptables|ip6tables|ebtables)\Z")]
TableName = Annotated[str, Meta(pattern=r"\A(filter|nat|mangle)\Z")]
#: Nova's chain; its name may end with a device name.
OwnChain = Annotated[str, Meta(pattern=r"\Anova-[A-Za-z0-9_.:@+-]{1,40}\Z")]
#: Chain that contains a jump.
Chain = Annotated[str, Meta(pattern=r"\A(INPUT|OUTPUT|FORWARD|PREROUTING|POSTROUTING|nova-[A-Za-z0-9_.:@+-]{1,40})\Z")]
Own = Annotated[str, Meta(pattern=r"\Anova-[A-Za-z0-9_-]{1,20}\Z")]
OwnOrNone = Annotated[str, Meta(pattern=r"\A(nova-[A-Za-z0-9_-]{1,20})?\Z")]
Rule = Annotated[str, Meta(pattern=r"\A[!-~]([ -~]*[!-~])?\Z", max_length=1000)]
MOST_RULES = 200_000

VALUE = re.compile(r"[A-Za-z0-9_.,:/+=][A-Za-z0-9_.,:/+=@-]{0,127}")
OWN_CHAIN = re.compile(r"nova-[A-Za-z0-9_.:@+-]{1,40}")
JUMPS = frozenset({"-j", "-g"})
#: Option -> number of its values.
OPTIONS = dict.fromkeys((
    "-s", "-d", "-i", "-o", "-p", "-m", "-j", "-g", "--ctstate", "--ctdir", "--mark", "--sport", "--dport", "--sports",
    "--dports", "--icmp-type", "--icmpv6-type", "--to-destination", "--to-source", "--to-ports", "--ip-proto",
    "--ip-src", "--ip-dst", "--ip-sport", "--ip-dport", "--ip-icmp-type", "--ip6-proto", "--ip6-src", "--ip6-dst",
    "--ip6-sport", "--ip6-dport", "--ip6-icmp-type", "--arp-ip-src", "--arp-ip-dst", "--arp-mac-src"), 1)
OPTIONS |= {"!": 0, "--checksum-fill": 0}
MATCHES = frozenset({"conntrack", "connmark", "tcp", "udp", "icmp", "icmp6", "multiport"})
VERDICTS = frozenset({"ACCEPT", "DROP", "REJECT", "RETURN", "DNAT", "SNAT", "REDIRECT", "CHECKSUM", "redirect"})

Jumps = Annotated[dict[Chain, tuple[OwnChain, ...]], Meta(max_length=100)]


class GivenTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Wire form of ``nova.privileged.iptables.Table``."""

    name: TableName
    chains: dict[OwnChain, Annotated[tuple[Rule, ...], Meta(max_length=MOST_RULES)]] = {}
    shared: tuple[OwnChain, ...] = ()
    first: Jumps = {}
    last: Jumps = {}
    optional: bool = False
    sparse: bool = False
    own: OwnOrNone = ""


@call("iptables.apply")
def apply(call: HelperCall, program: Program, tables: Annotated[tuple[GivenTable, ...], Meta(max_length=16)]) -> bool:
    for table in tables:
        for rules in table.chains.values():
            for rule in rules:
                _check(call, rule)
    return _filter(call, program).apply([Table(
        table.name, chains=table.chains, shared=table.shared, first=table.first, last=table.last,
        optional=table.optional, sparse=table.sparse, own=table.own) for table in tables])


@call("iptables.remove")
def remove(call: HelperCall, program: Program, table: TableName, own: Own) -> bool:
    return _filter(call, program).remove(table, own)


def _filter(call: HelperCall, program: str) -> PacketFilter:
    lock = FRAMES_LOCK if program == "ebtables" else LOCK
    return PacketFilter(call.runner(30.0), call.settings.state_path / lock, call.settings.foreign, DIALECTS[program])


def _check(call: HelperCall, rule: str) -> None:
    words = rule.split(" ")
    while words:
        option = words.pop(0)
        if option not in OPTIONS:
            raise call.refused(f"a rule has the invalid word {option[:60]!r}")
        if not OPTIONS[option]:
            continue
        value = words.pop(0) if words else ""
        if value == "!" and words:  # as ebtables prints it
            value = words.pop(0)
        if not VALUE.fullmatch(value):
            raise call.refused(f"a rule has the invalid value {option} {value[:60]!r}")
        if option == "-m" and value not in MATCHES:
            raise call.refused(f"a rule matches by {value[:60]!r}")
        if option in JUMPS and value not in VERDICTS and value != call.settings.drop and not OWN_CHAIN.fullmatch(value):
            raise call.refused(f"a rule jumps to {value[:60]!r}")
