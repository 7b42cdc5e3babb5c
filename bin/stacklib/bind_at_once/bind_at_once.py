"""Mechanism driver whose ports are ACTIVE when they are bound: the complete Neutron API, without agents on hosts.

Guests' interfaces are in one Linux bridge for each network, as with an agent, but frames do not leave their host.
"""

from __future__ import annotations

from typing import Any

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.db import constants as sizes
from neutron_lib.plugins.ml2 import api
from neutron_lib.services.qos import base as qos
from neutron_lib.services.qos import constants as rules

BRIDGE_PREFIX, BRIDGE_LENGTH = "brq", 14  # the maximum length of an interface's name, minus one
VNIC_TYPES = {
    portbindings.VNIC_NORMAL: portbindings.VIF_TYPE_BRIDGE,
    portbindings.VNIC_DIRECT: portbindings.VIF_TYPE_HW_VEB,
    portbindings.VNIC_MACVTAP: portbindings.VIF_TYPE_HW_VEB,
}
_AMOUNT = {"type:range": [0, sizes.DB_INTEGER_MAX_VALUE]}
# QoS rules that ports accept; they do not limit traffic, since there is no agent.
QOS_RULES = {
    rules.RULE_TYPE_BANDWIDTH_LIMIT: {rules.MAX_KBPS: _AMOUNT, rules.MAX_BURST: _AMOUNT,
                                      rules.DIRECTION: {"type:values": constants.VALID_DIRECTIONS}},
    rules.RULE_TYPE_MINIMUM_BANDWIDTH: {rules.MIN_KBPS: _AMOUNT,
                                        rules.DIRECTION: {"type:values": constants.VALID_DIRECTIONS}},
    rules.RULE_TYPE_MINIMUM_PACKET_RATE: {rules.MIN_KPPS: _AMOUNT,
                                          rules.DIRECTION: {"type:values": (*constants.VALID_DIRECTIONS, "any")}},
}


class BindAtOnce(api.MechanismDriver):
    """Driver that binds its vnic types on every host; the binding of other types fails, as in a real cloud."""

    def initialize(self) -> None:
        self.qos = qos.DriverBase("bind_at_once", list(set(VNIC_TYPES.values())), list(VNIC_TYPES), QOS_RULES)

    @property
    def connectivity(self) -> str:
        return portbindings.CONNECTIVITY_L2

    def responsible_for_ports_allocation(self, context: api.PortContext) -> bool:
        """Return True for the bandwidth of every provider: there is no other driver."""
        return True

    def bind_port(self, context: api.PortContext) -> None:
        vnic_type = context.current.get(portbindings.VNIC_TYPE, portbindings.VNIC_NORMAL)
        vif_type = VNIC_TYPES.get(vnic_type)
        if vif_type is None:
            return
        for segment in context.segments_to_bind:
            details = _details(context.current, segment, vif_type)
            context.set_binding(segment[api.ID], vif_type, details, status=constants.PORT_STATUS_ACTIVE)
            return


def _details(port: dict[str, Any], segment: dict[str, Any], vif_type: str) -> dict[str, Any]:
    if vif_type == portbindings.VIF_TYPE_HW_VEB:
        return {portbindings.CAP_PORT_FILTER: False,
                portbindings.VIF_DETAILS_VLAN: str(segment.get(api.SEGMENTATION_ID) or 0)}
    bridge = (BRIDGE_PREFIX + port["network_id"])[:BRIDGE_LENGTH]
    return {portbindings.CAP_PORT_FILTER: True, portbindings.VIF_DETAILS_BRIDGE_NAME: bridge}
