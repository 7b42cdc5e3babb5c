"""Bodies of operations on a server's interfaces."""

from __future__ import annotations

from nova.api.schemas.server_parts import TAG
from nova.web.schema import Body, Spec, row

_ADDRESS = (Spec(format="ipv4"), Spec(format="ipv6"))

ATTACH = Body(
    row("interfaceAttachment", "object"),
    row("interfaceAttachment.net_id", "string", format="uuid"),
    row("interfaceAttachment.port_id", "string", format="uuid"),
    row("interfaceAttachment.fixed_ips", "array", min_items=1, max_items=1),
    row("interfaceAttachment.fixed_ips[]", "object"),
    row("interfaceAttachment.fixed_ips[].ip_address", "string", one_of=_ADDRESS, required=True),
    row("interfaceAttachment.tag", "string", **TAG, since="2.49"))

ADD_FIXED_IP = Body(
    row("addFixedIp", "object", required=True),
    row("addFixedIp.networkId", ("string", "number"), min_length=1, max_length=36, required=True))

REMOVE_FIXED_IP = Body(
    row("removeFixedIp", "object", required=True),
    row("removeFixedIp.address", "string", one_of=_ADDRESS, required=True))
