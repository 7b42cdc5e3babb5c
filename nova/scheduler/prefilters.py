"""What is looked at before all filters: the host can do what image and flavor imply, and is not set aside for others.

One row a rule, by its name in upstream's documents. Some are switched on by an option of ``[scheduler]``. A rule whose
requirement a request does not have costs it nothing. What flavors and images say outright (``trait:``, ``resources:``)
is looked at elsewhere (:mod:`nova.scheduler.provider_fit`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from nova.conf.base import Options
from nova.model.image.image_properties import OLD_NAMES
from nova.model.placement.traits import TRAITS
from nova.model.scheduling import address_space
from nova.model.scheduling.decisions import PlacementRequest
from nova.model.scheduling.image_flavor_conflicts import YES
from nova.model.server.action_restrictions import has_tpm
from nova.scheduler.filters import Filter
from nova.scheduler.filters.aggregate_members import projects_of
from nova.scheduler.filters.compute_capabilities import fact
from nova.scheduler.views import HostView

LOG = logging.getLogger(__name__)

Traits = frozenset[str]
NOTHING: Traits = frozenset()


# -- traits that a request implies

def require_image_type_support(request: PlacementRequest) -> Traits:
    """The disk format of the image that it boots from (none for a volume)."""
    return _trait("COMPUTE_IMAGE_TYPE", request.image_disk_format)


#: Property of an image -> what the traits of its values begin with.
FAMILIES = {
    "hw_architecture": "HW_ARCH", "hw_emulation_architecture": "COMPUTE_ARCH", "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS", "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL", "hw_viommu_model": "COMPUTE_VIOMMU_MODEL",
    "hw_sound_model": "COMPUTE_SOUND_MODEL", "hw_usb_model": "COMPUTE_USB_MODEL",
    "hw_firmware_type": "COMPUTE_FIRMWARE"}
#: Values that traits write in another way.
SPELLED = {"ARMV7L": "ARMV7"}


def transform_image_metadata(request: PlacementRequest) -> Traits:
    """What the image's properties ask of the guest's devices."""
    image = {OLD_NAMES.get(name, name): value for name, value in request.image_properties.items()}
    if "hw_emulation_architecture" in image:  # then the host's own may be another
        image.pop("hw_architecture", None)
    return NOTHING.union(*(_trait(family, image[name]) for name, family in FAMILIES.items() if name in image))


def accelerators_filter(request: PlacementRequest) -> Traits:
    """COMPUTE_ACCELERATORS for a flavor with ``accel:device_profile``."""
    return frozenset({"COMPUTE_ACCELERATORS"}) if request.extra_specs.get("accel:device_profile") else NOTHING


def packed_virtqueue_filter(request: PlacementRequest) -> Traits:
    """COMPUTE_NET_VIRTIO_PACKED where flavor or image want packed rings."""
    return frozenset({"COMPUTE_NET_VIRTIO_PACKED"}) if _says(request, "virtio_packed_ring") in YES else NOTHING


def ephemeral_encryption_filter(request: PlacementRequest) -> Traits:
    """COMPUTE_EPHEMERAL_ENCRYPTION where flavor or image want it, and the trait of the format they name."""
    if _says(request, "ephemeral_encryption") not in YES:
        return NOTHING
    kind = _says(request, "ephemeral_encryption_format")
    return frozenset({"COMPUTE_EPHEMERAL_ENCRYPTION"}) | _trait("COMPUTE_EPHEMERAL_ENCRYPTION", kind)


def virtio_sound_filter(request: PlacementRequest) -> Traits:
    """COMPUTE_SOUND_MODEL_VIRTIO where flavor or image want that sound device."""
    return frozenset({"COMPUTE_SOUND_MODEL_VIRTIO"}) if _says(request, "sound_model") == "virtio" else NOTHING


def tpm_secret_security_filter(request: PlacementRequest) -> Traits:
    """Who owns the secret of a virtual TPM, where the flavor says it."""
    if not has_tpm(request.image_properties, request.extra_specs):
        return NOTHING
    return _trait("COMPUTE_SECURITY_TPM_SECRET_SECURITY", request.extra_specs.get("hw:tpm_secret_security", ""))


def _says(request: PlacementRequest, name: str) -> str:
    """The flavor's word (``hw:NAME``), else the image's (``hw_NAME``)."""
    said = request.extra_specs.get(f"hw:{name}") or request.image_properties.get(f"hw_{name}") or ""
    return said.strip().lower()


def _trait(family: str, value: str) -> Traits:
    """The standard trait of a value; none where there is no such trait."""
    word = re.sub(r"[^A-Z0-9]", "_", value.strip().upper())
    trait = f"{family}_{SPELLED.get(word, word)}"
    return frozenset({trait}) if trait in TRAITS else NOTHING


class ImpliedTraits(Filter):
    """The host has all traits that one rule makes of the request."""

    public = True

    def __init__(self, rule: PrefilterRule, options: Options = None) -> None:
        super().__init__(options)
        assert rule.implies is not None
        self._name, self._implies = rule.name, rule.implies
        self.on_rebuild, self.reads = rule.of_image, rule.reads

    @property
    def name(self) -> str:
        return self._name

    def wanted(self, request: PlacementRequest) -> bool:
        return bool(self._implies(request))

    def by_facts(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        missing = self._implies(request) - host.facts.traits
        return f"no {', '.join(sorted(missing))}" if missing else None


# -- numbers that a host must reach

class AddressBits(Filter):
    """Hosts whose processor has as many bits of physical addresses as flavor or image ask for."""

    public = on_rebuild = True
    reads = ("extra_specs", "image_properties")

    @property
    def name(self) -> str:
        return "address_bits_filter"

    def about(self, request: PlacementRequest) -> object:
        return _address_bits(request)

    def wanted(self, request: PlacementRequest) -> bool:
        return _address_bits(request) > 0

    def by_facts(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        wanted, has = _address_bits(request), fact(host, ["cpu_info", "maxphysaddr", "bits"])
        return None if isinstance(has, int) and has >= wanted else f"fewer than {wanted} bits of physical addresses"


def _address_bits(request: PlacementRequest) -> int:
    return address_space.bits_of(request.extra_specs, request.image_properties)


# -- aggregates that are for some only

_TRAIT_KEY = re.compile(r"trait[a-zA-Z0-9_-]{0,64}:([A-Z0-9_]+)")


class IsolateAggregates(Filter):
    """Hosts all of whose aggregates' traits (metadata ``trait:NAME=required``) flavor or image ask for."""

    reads = ("extra_specs", "image_properties")

    @property
    def name(self) -> str:
        return "isolate_aggregates"

    def by_aggregates(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        theirs = {key.removeprefix("trait:") for key, values in host.aggregates.values.items()
                  if key.startswith("trait:") and "required" in values}
        if not theirs or theirs <= _required(request.extra_specs) | _required(request.image_properties):
            return None
        return "its aggregates are for servers that ask for their traits"


def _required(said: Mapping[str, str]) -> set[str]:
    found = ((_TRAIT_KEY.fullmatch(key), value) for key, value in said.items())
    return {match[1] for match, value in found if match is not None and value == "required"}


class RequireTenantAggregate(Filter):
    """Hosts of the aggregates that name the project in ``filter_tenant_id``, where some do. Where none does: any host,
    unless there must be one."""

    reads = ("project_id", "tenant_aggregates")

    @property
    def name(self) -> str:
        return "require_tenant_aggregate"

    def wanted(self, request: PlacementRequest) -> bool:
        return request.tenant_aggregates or bool(self.options.scheduler.placement_aggregate_required_for_tenants)

    def by_aggregates(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        return None if request.project_id in projects_of(host.aggregates) else "in no aggregate of the project"


# -- the table

class PrefilterRule(NamedTuple):
    """``switch``: the option of ``[scheduler]`` that switches it on; None: it is always on. ``met``: why there is
    nothing to do here. ``of_image``: about the image alone, so that it is looked at in a rebuild as well."""

    name: str
    switch: str | None = None
    implies: Callable[[PlacementRequest], Traits] | None = None
    filter: type[Filter] | None = None
    of_image: bool = False
    met: str = ""
    reads: tuple[str, ...] = ("extra_specs", "image_properties")


_ANY_HOST = "the networks of this cloud have no segments: every host is near each of them"
RULES: tuple[PrefilterRule, ...] = (
    PrefilterRule("isolate_aggregates", "enable_isolated_aggregate_filtering", filter=IsolateAggregates),
    PrefilterRule("require_tenant_aggregate", "limit_tenants_to_placement_aggregate", filter=RequireTenantAggregate),
    PrefilterRule("map_az_to_placement_aggregate", met="AvailabilityZoneFilter looks at the zone in every decision"),
    PrefilterRule("require_image_type_support", "query_placement_for_image_type_support", require_image_type_support,
                  of_image=True, reads=("image_disk_format",)),
    PrefilterRule("transform_image_metadata", "image_metadata_prefilter", transform_image_metadata, of_image=True),
    PrefilterRule("compute_status_filter",
                  met="ComputeFilter looks at service and trait COMPUTE_STATUS_DISABLED in every "
                                      "decision"),
    PrefilterRule("accelerators_filter", implies=accelerators_filter),
    PrefilterRule("packed_virtqueue_filter", implies=packed_virtqueue_filter),
    PrefilterRule("routed_networks_filter", "query_placement_for_routed_network_aggregates", met=_ANY_HOST),
    PrefilterRule("remote_managed_ports_filter", met="no port of this cloud is managed from elsewhere"),
    PrefilterRule("ephemeral_encryption_filter", implies=ephemeral_encryption_filter),
    PrefilterRule("virtio_sound_filter", implies=virtio_sound_filter),
    PrefilterRule("tpm_secret_security_filter", implies=tpm_secret_security_filter),
    PrefilterRule("owner_nova_filter", met="servers get devices that their host itself reported, and no others"),
)


#: Those that the Compute API's reference implementation leaves to other parts.
OWN_RULES: tuple[PrefilterRule, ...] = (PrefilterRule("address_bits_filter", filter=AddressBits),)


def load(options: Options) -> tuple[Filter, ...]:
    """The rules that are on, as filters. Without ``options.scheduler``: those that are always on."""
    found: list[Filter] = []
    for rule in (*RULES, *OWN_RULES):
        if rule.switch is not None and not getattr(getattr(options, "scheduler", None), rule.switch, False):
            continue
        if rule.met and rule.switch is not None:
            LOG.warning("[scheduler]%s changes nothing: %s", rule.switch, rule.met)
        if rule.implies is not None:
            found.append(ImpliedTraits(rule, options))
        elif rule.filter is not None:
            found.append(rule.filter(options))
    return tuple(found)
