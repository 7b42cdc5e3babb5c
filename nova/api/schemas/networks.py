"""Bodies of nova-network's networks."""

from __future__ import annotations

from nova.api.schemas.server_actions import plain
from nova.web.schema import ACCEPT, BODY, Body, row
from nova.web.specs import Rules

_TEXT = ("string", "null")
_NUMBER = ("integer_like", "null")
_TEXTS = ("cidr", "cidr_v6", "bridge", "bridge_interface", "gateway", "gateway_v6", "dhcp_server", "dns1", "dns2",
          "fixed_cidr", "allowed_start", "allowed_end", "uuid", "project_id")
_VLAN: Rules = {"min": 1, "max": 4094}
_NUMBERS: dict[str, Rules] = {
    "vlan": _VLAN, "vlan_start": _VLAN, "vpn_start": {"min": 1, "max": 65535},
    "num_networks": {"min": 1, "max": 65536}, "network_size": {"min": 1, "max": 1 << 24},
    "mtu": {"min": 0, "max": 65535}, "priority": {"min": 0, "max": 1 << 30}}
_FLAGS = ("multi_host", "enable_dhcp", "share_address")

CREATE = Body(
    row("network", "object", required=True, unknown=ACCEPT),
    row("network.label", "string", min_length=1, max_length=255, required=True),
    *(row(f"network.{name}", _TEXT, max_length=255) for name in _TEXTS),
    *(row(f"network.{name}", _NUMBER, **rules) for name, rules in _NUMBERS.items()),
    *(row(f"network.{name}", "boolean_like") for name in _FLAGS))

ADD = Body(row(BODY, "object"), row("id", _TEXT, max_length=255, required=True),
           legacy=(row("id", _TEXT, max_length=255),))  # a missing id has its own error code

ASSOCIATE_HOST = Body(row("associate_host", "string", min_length=1, max_length=255, pattern="^[a-zA-Z0-9-._]*$",
                          required=True))
DISASSOCIATE, DISASSOCIATE_HOST, DISASSOCIATE_PROJECT = map(
    plain, ("disassociate", "disassociate_host", "disassociate_project"))
RESERVE, UNRESERVE = map(plain, ("reserve", "unreserve"))
