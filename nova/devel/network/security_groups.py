"""Security groups of FakeNeutron, and their rules. Each project's default group is created on demand."""

from __future__ import annotations

import ipaddress
from typing import cast

from nova.devel.network.crud import NetworkResource, tag_routes
from nova.devel.network.kinds import GROUP, PORT, RULE, NetworkError, is_privileged
from nova.devel.network.lists import query_of
from nova.devel.network.records import GroupRecord, RuleRecord
from nova.devel.network.store import DEFAULT, FakeNetworkStore, touch
from nova.devel.service import FakeCall, FakeRoute, TokenOwner

NUMBERS = {"1": "icmp", "6": "tcp", "17": "udp", "58": "ipv6-icmp", "icmpv6": "ipv6-icmp"}
WITH_PORTS = ("tcp", "udp", "sctp", "udplite", "dccp")
ICMP = ("icmp", "ipv6-icmp")
#: Members by which rules are compared, in addition to the protocol.
SAME = ("security_group_id", "direction", "ethertype", "port_range_min", "port_range_max", "remote_ip_prefix",
        "remote_group_id")


def look_for_default(store: FakeNetworkStore, call: FakeCall) -> None:
    """Create the default group of the caller, or of the project in an administrator's query, so that the list has
    it."""
    said = query_of(call)
    wanted = [*said.get("project_id", ()), *said.get("tenant_id", ())][:1] if is_privileged(call.caller) else []
    for project_id in wanted or [call.caller.project_id]:
        if project_id:
            store.default_group(project_id)


def make_group(store: FakeNetworkStore, caller: TokenOwner, project_id: str, given: GroupRecord) -> GroupRecord:
    """Create a group with rules that allow all outgoing traffic. Raises 409 for a second default group."""
    default = store.default_group(project_id)
    if given.get("name") == DEFAULT:
        raise NetworkError(409, "SecurityGroupDefaultAlreadyExists", "Default security group already exists: "
                           f"{default['id']}.")
    store.check_quota(GROUP, project_id)  # the default group counts too
    made = store.insert(GROUP, project_id, given)
    store.let_out(made)
    return made


def change_group(store: FakeNetworkStore, caller: TokenOwner, group: GroupRecord, given: GroupRecord) -> None:
    """Change a group. Raises 409 for a new name of the default group, the default name for another group, or new
    statefulness of a group in use."""
    if (group["name"] == DEFAULT) != (given.get("name", group["name"]) == DEFAULT):
        raise NetworkError(409, "SecurityGroupCannotUpdateDefault", "Updating default security group not allowed.")
    if given.get("stateful", group["stateful"]) != group["stateful"]:
        _check_unused(store, group)
    touch(group, given)


def remove_group(store: FakeNetworkStore, caller: TokenOwner, group: GroupRecord) -> None:
    """Delete a group with its rules, and other groups' rules that refer to it. Raises 409 if it is in use, or for a
    default group unless an administrator deletes it."""
    if group["name"] == DEFAULT and not is_privileged(caller):
        raise NetworkError(409, "SecurityGroupCannotRemoveDefault", "Insufficient rights for removing default security "
                           "group.")
    _check_unused(store, group)
    for rule in [*store.where(RULE, security_group_id=group["id"]), *store.where(RULE, remote_group_id=group["id"])]:
        store.of(RULE).pop(rule["id"], None)
    store.remove(GROUP, group)


def _check_unused(store: FakeNetworkStore, group: GroupRecord) -> None:
    if any(group["id"] in port["security_groups"] for port in store.of(PORT).values()):
        raise NetworkError(409, "SecurityGroupInUse", f"Security Group {group['id']} in use.")


def make_rule(store: FakeNetworkStore, caller: TokenOwner, project_id: str, given: RuleRecord) -> RuleRecord:
    """Create a rule. Raises 400 for inconsistent members, 404 for an unknown group, 409 if the group has the same
    rule."""
    group = store.own(GROUP, given["security_group_id"], caller)
    members = cast(RuleRecord, {name: member.default for name, member in RULE.members.items()} | dict(given))
    protocol = str(members["protocol"] or "any").lower()
    members["protocol"] = None if protocol == "any" else protocol
    _check_ports(members)
    _check_remote(store, caller, members)
    for other in store.where(RULE, **{name: value for name, value in members.items() if name in SAME}):
        if _protocol(other) != _protocol(members):
            continue
        raise NetworkError(409, "SecurityGroupRuleExists", f"Security group rule already exists. Rule id is "
                           f"{other['id']}.")
    touch(group, {})
    return store.insert(RULE, group["project_id"], members)


def _protocol(rule: RuleRecord) -> str | None:
    """Return the protocol's name, whether it was given by name or number."""
    name = NUMBERS.get(rule["protocol"] or "", rule["protocol"])
    return "ipv6-icmp" if name == "icmp" and rule["ethertype"] == "IPv6" else name


def _check_ports(rule: RuleRecord) -> None:
    low, high, protocol = rule["port_range_min"], rule["port_range_max"], _protocol(rule)
    if low is None and high is None:
        return
    if protocol is None:
        raise NetworkError(400, "SecurityGroupProtocolRequiredWithPorts", "Must also specify protocol if port range is "
                           "given.")
    if protocol in ICMP:
        if low is None:
            raise NetworkError(400, "SecurityGroupMissingIcmpType", f"ICMP code (port-range-max) {high} is provided "
                               "but ICMP type (port-range-min) is missing.")
        for field, name, value in (("type", "min", low), ("code", "max", high or 0)):
            if not 0 <= value <= 255:
                raise NetworkError(400, "SecurityGroupInvalidIcmpValue", f"Invalid value for ICMP {field} "
                                   f"(port-range-{name}) {value}. It must be 0 to 255.")
        return
    for port in (low, high):
        if port is not None and not 0 <= port <= 65535:
            raise NetworkError(400, "SecurityGroupInvalidPortValue", f"Invalid value for port {port}")
    if protocol not in WITH_PORTS or low is None or high is None or not 1 <= low <= high:
        raise NetworkError(400, "SecurityGroupInvalidPortRange", "For TCP/UDP protocols, port_range_min must be <= "
                           "port_range_max, and other protocols have no ports")


def _check_remote(store: FakeNetworkStore, caller: TokenOwner, rule: RuleRecord) -> None:
    if rule["remote_group_id"] and rule["remote_ip_prefix"]:
        raise NetworkError(400, "SecurityGroupRemoteGroupAndRemoteIpPrefix", "Only remote_ip_prefix or remote_group_id "
                           "may be provided.")
    if rule["remote_group_id"]:
        store.seen(GROUP, rule["remote_group_id"], caller)
    if rule["remote_ip_prefix"]:
        prefix = ipaddress.ip_network(rule["remote_ip_prefix"], strict=False)
        if rule["ethertype"] != f"IPv{prefix.version}":
            raise NetworkError(400, "SecurityGroupRuleParameterConflict", f"Conflicting value ethertype "
                               f"{rule['ethertype']} for CIDR {rule['remote_ip_prefix']}")
        if "/" not in rule["remote_ip_prefix"]:
            rule["remote_ip_prefix"] = str(prefix)


def change_rule(store: FakeNetworkStore, caller: TokenOwner, rule: RuleRecord, given: RuleRecord) -> None:
    """Update the revision: rules have no members that can be changed."""
    touch(rule, given)


def remove_rule(store: FakeNetworkStore, caller: TokenOwner, rule: RuleRecord) -> None:
    """Delete a rule."""
    store.remove(RULE, rule)


GROUPS = NetworkResource(GROUP, make_group, change_group, remove_group, look_for_default)
RULES = NetworkResource(RULE, make_rule, change_rule, remove_rule, look_for_default)
ROUTES: tuple[FakeRoute[FakeNetworkStore], ...] = (*GROUPS.routes, *tag_routes(GROUP), *RULES.routes)
