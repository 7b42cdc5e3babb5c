"""Why Neutron's networks, ports or groups can not be had, in the words that clients know."""

from __future__ import annotations

from nova import errors


class AmbiguousNetwork(errors.Conflict):
    code = "network.ambiguous"
    message = "Multiple possible networks found, use a Network ID to be more specific."


class ExternalNetwork(errors.Forbidden):
    code = "network.external"
    message = "It is not allowed to create an interface on external network {network_id}"


class NoSubnet(errors.Invalid):
    code = "network.no_subnet"
    message = "Network {network_id} requires a subnet in order to boot instances on."


class NoOwnNetwork(errors.Invalid):
    code = "network.no_auto_allocation"
    message = "Unable to automatically allocate a network for project {project_id}"


class BadPort(errors.Invalid):
    code, message = "network.bad_port", "Port id {port_id} could not be found."


class PortTwice(errors.Invalid):
    code, message = "network.port_twice", "Port {port_id} is asked for more than once."


class PortInUse(errors.Conflict):
    code, message = "network.port_in_use", "Port {port_id} is still in use."


class PortWithoutAddress(errors.Invalid):
    code, message = "network.port_without_address", "Port {port_id} requires a FixedIP in order to be used."


class PortNamedOtherwise(errors.Invalid):
    code = "network.port_dns_name"
    message = "Port {port_id} not usable for server {server}: its DNS name is {dns_name}, not {hostname}."


class NoSecurityThere(errors.Invalid):
    code = "network.no_port_security"
    message = ("Network requires port_security_enabled and subnet associated in order to apply security groups: "
               "network {network_id} has not.")


class NoSuchSecurityGroup(errors.Invalid):
    code, message = "network.no_such_group", "Security group {name} not found."


class AmbiguousGroup(errors.Conflict):
    code = "network.group_ambiguous"
    message = "Multiple security groups found matching '{name}'. Use an ID to be more specific."


class TooManyPorts(errors.OverQuota):
    code, message = "network.too_many_ports", "Maximum number of ports exceeded"


class BindingFailed(errors.HostRefused):
    code = "network.binding_failed"
    message = "Binding failed for port {port_id}, please check neutron logs for more information: host {host} has no " \
              "way to its network."


class DemandingPort(errors.Invalid):
    code = "network.demanding_port"
    message = ("Port {port_id} takes resources of its host (a device, or a share of bandwidth), and can not be given "
               "to a server that lives: create the server with it.")


class AcceleratedPort(errors.Invalid):
    code = "network.accelerated_port"
    message = "Port {port_id} is of an accelerator, and this cloud has no service for those."
