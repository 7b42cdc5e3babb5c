"""Why a wish for networks, addresses or groups can not be: whichever back end says it."""

from __future__ import annotations

from nova import errors


class BadNetwork(errors.Invalid):
    code, message = "server.bad_network", "Network {network_id} could not be found."


class BadAddress(errors.Invalid):
    code = "server.bad_fixed_ip"
    message = "Invalid fixed_ip: {address} is not an address of network {network} ({cidr})."


class AddressInUse(errors.Invalid):
    code = "server.fixed_ip_in_use"
    message = "Invalid fixed_ip: {address} of network {network} is in use already."


class NoSuchGroup(errors.Invalid):
    code = "server.no_such_security_group"
    message = "Security group {name} could not be found."
