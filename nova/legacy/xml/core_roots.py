"""XML layouts of the core API: versions, limits, extensions, servers, flavors, images, metadata, addresses, faults."""

from __future__ import annotations

from nova.api.faults import NAMES, OTHER_NAME
from nova.legacy.xml.layouts import ATTRIBUTES, META, Listing, Pairs, Record, Root
from nova.legacy.xml.namespaces import COMMON, COMPUTE

_IPS = Listing("ip", ATTRIBUTES, flat=True)
_GROUPS = Listing("security_group", ATTRIBUTES)
_VOLUMES = Listing("os-extended-volumes:volume_attached", ATTRIBUTES, flat=True)

_SERVER = Record(
    attributes=True,
    names={"tenant_id": "tenantId", "user_id": "userId"},
    inside={"image": ATTRIBUTES, "flavor": ATTRIBUTES, "metadata": META, "security_groups": _GROUPS,
            "fault": Record(attributes=True, elements=("message", "details"), order=("message", "details"),
                            always=("details",)),
            "addresses": Pairs("network", "id", of=_IPS), "os-extended-volumes:volumes_attached": _VOLUMES},
    elements=("image",),  # an empty string for a volume-backed server
    order=("image", "flavor", "fault", "metadata", "addresses", "os-extended-volumes:volumes_attached", "links",
           "security_groups"))
_IMAGE = Record(attributes=True, inside={"server": ATTRIBUTES, "metadata": META}, order=("server", "metadata"))
_LIMIT = Listing("limit", ATTRIBUTES, flat=True)
_LIMITS = Record(
    order=("rate", "absolute"), always=("rate", "absolute"), names={"rate": "rates"},
    inside={"rate": Listing("rate", Record(attributes=True, inside={"limit": _LIMIT})),
            "absolute": Pairs("limit", "name", "value")})
_EXTENSION = Record(attributes=True, elements=("description",), order=("description",))
_VERSION = Record(
    attributes=True, hidden=("version", "min_version"), order=("media-types",),
    inside={"media-types": Listing("media-type", ATTRIBUTES)})
_FAULT = Record(attributes=True, elements=("message", "retryAfter"))

ROOTS: dict[str, Root] = {
    "server": Root(_SERVER, COMPUTE, ("atom",)),
    "servers": Root(Listing("server", _SERVER), COMPUTE, ("atom",)),
    "flavor": Root(ATTRIBUTES, COMPUTE, ("atom",)),
    "flavors": Root(Listing("flavor", ATTRIBUTES), COMPUTE, ("atom",)),
    "image": Root(_IMAGE, COMPUTE, ("atom",)),
    "images": Root(Listing("image", _IMAGE), COMPUTE, ("atom",)),
    "metadata": Root(META, COMPUTE),
    "meta": Root(Pairs("meta", flat=True), COMPUTE),
    "addresses": Root(Pairs("network", "id", of=_IPS), COMPUTE),
    "limits": Root(_LIMITS, COMMON, ("atom", "os-used-limits")),
    "extension": Root(_EXTENSION, COMMON, ("atom",)),
    "extensions": Root(Listing("extension", _EXTENSION), COMMON, ("atom",)),
    "version": Root(_VERSION, COMMON, ("atom",)),
    "versions": Root(Listing("version", _VERSION), COMMON, ("atom",)),
    "choices": Root(Listing("version", _VERSION), COMMON, ("atom",)),
    **dict.fromkeys((*NAMES.values(), OTHER_NAME), Root(_FAULT, COMPUTE)),
}

#: The response to a create always has an empty metadata element.
CREATED = Root(Record(attributes=True, inside=_SERVER.inside, order=_SERVER.order, always=("metadata",)), COMPUTE,
               ("atom",))
RESERVED = Root(ATTRIBUTES, COMPUTE, ("atom",))
ONE_NETWORK = Root(Pairs("network", "id", of=_IPS, flat=True), COMPUTE)
DIAGNOSTICS = Root(Record(), COMPUTE)
