"""Prefilters: checks before all filters that the host supports what image and flavor imply, and is not reserved.

One row per rule, by its name in upstream's documents. Some are enabled by an option of ``[scheduler]``. A rule costs
nothing for requests without its requirement. Explicit requirements of flavors and images (``trait:``, ``resources:``)
are checked elsewhere (:mod:`nova.scheduler.provider_fit`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from nova.model.image.image_properties import OLD_NAMES
from nova.model.placement.traits import TRAITS
from nova.model.scheduling import address_space
from nova.model.scheduling.decisions import PlacementRequest
from nova.model.scheduling.image_flavor_conflicts import YES
from nova.model.server.action_restrictions import has_tpm
from nova.scheduler.filters import Filter
from nova.scheduler.filters.aggregate_members import projects_of
from nova.scheduler.filters.compute_capabilities import fact
from nova.scheduler.plugin_options import PluginOptions
from nova.scheduler.views import HostView

LOG = logging.getLogger(__name__)

Traits = frozenset[str]
NOTHING: Traits = frozenset()


# -- traits that a request implies

def require_image_type_support(request: PlacementRequest) -> Traits:
    """Return the trait of the boot image's disk format (none for a volume)."""
    return _trait("COMPUTE_IMAGE_TYPE", request.image_disk_format)


#: Property of an image -> prefix of the traits of its values.
FAMILIES = {
    "hw_architecture": "HW_ARCH", "hw_emulation_architecture": "COMPUTE_ARCH", "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
    "hw_disk_bus": "COMPUTE_STORAGE_BUS", "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
    "hw_vif_model": "COMPUTE_NET_VIF_MODEL", "hw_viommu_model": "COMPUTE_VIOMMU_MODEL",
    "hw_sound_model": "COMPUTE_SOUND_MODEL", "hw_usb_model": "COMPUTE_USB_MODEL",
    "hw_firmware_type": "COMPUTE_FIRMWARE"}
#: Values with another spelling in traits.
SPELLED = {"ARMV7L": "ARMV7"}


def transform_image_metadata(request: PlacementRequest) -> Traits:
    """Return the traits that the image's properties require for the guest's devices."""
    image = {OLD_NAMES.get(name, name): value for name, value in request.image_properties.items()}
    if "hw_emulation_architecture" in image:  # then the host's own architecture may differ
        image.pop("hw_architecture", None)
    return NOTHING.union(*(_trait(family, image[name]) for name, family in FAMILIES.items() if name in image))


def accelerators_filter(request: PlacementRequest) -> Traits:
    """Return COMPUTE_ACCELERATORS for a flavor with ``accel:device_profile``."""
    return frozenset({"COMPUTE_ACCELERATORS"}) if request.extra_specs.get("accel:device_profile") else NOTHING


def packed_virtqueue_filter(request: PlacementRequest) -> Traits:
    """Return COMPUTE_NET_VIRTIO_PACKED if flavor or image request packed rings."""
    return frozenset({"COMPUTE_NET_VIRTIO_PACKED"}) if _says(request, "virtio_packed_ring") in YES else NOTHING


def ephemeral_encryption_filter(request: PlacementRequest) -> Traits:
    """Return COMPUTE_EPHEMERAL_ENCRYPTION if flavor or image request it, and the trait of the format they name."""
    if _says(request, "ephemeral_encryption") not in YES:
        return NOTHING
    kind = _says(request, "ephemeral_encryption_format")
    return frozenset({"COMPUTE_EPHEMERAL_ENCRYPTION"}) | _trait("COMPUTE_EPHEMERAL_ENCRYPTION", kind)


def virtio_sound_filter(request: PlacementRequest) -> Traits:
    """Return COMPUTE_SOUND_MODEL_VIRTIO if flavor or image request that sound device."""
    return frozenset({"COMPUTE_SOUND_MODEL_VIRTIO"}) if _says(request, "sound_model") == "virtio" else NOTHING


def tpm_secret_security_filter(request: PlacementRequest) -> Traits:
    """Return the trait of the virtual TPM's secret security, if the flavor sets it."""
    if not has_tpm(request.image_properties, request.extra_specs):
        return NOTHING
    return _trait("COMPUTE_SECURITY_TPM_SECRET_SECURITY", request.extra_specs.get("hw:tpm_secret_security", ""))


def _says(request: PlacementRequest, name: str) -> str:
    """Return the flavor's value (``hw:NAME``), else the image's (``hw_NAME``)."""
    said = request.extra_specs.get(f"hw:{name}") or request.image_properties.get(f"hw_{name}") or ""
    return said.strip().lower()


def _trait(family: str, value: str) -> Traits:
    """Return the standard trait of a value, or none if it does not exist."""
    word = re.sub(r"[^A-Z0-9]", "_", value.strip().upper())
    trait = f"{family}_{SPELLED.get(word, word)}"
    return frozenset({trait}) if trait in TRAITS else NOTHING


class ImpliedTraits(Filter):
    """Filter for hosts with all traits that one rule derives from the request."""

    public = True

    def __init__(self, rule: PrefilterRule, options: PluginOptions | None = None) -> None:
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


# -- minimum values of a host

class AddressBits(Filter):
    """Filter for hosts whose CPU has at least the physical address bits that flavor or image request."""

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


# -- reserved aggregates

_TRAIT_KEY = re.compile(r"trait[a-zA-Z0-9_-]{0,64}:([A-Z0-9_]+)")


class IsolateAggregates(Filter):
    """Filter for hosts whose aggregates' traits (metadata ``trait:NAME=required``) are all requested by flavor or
    image."""

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
        return "its aggregates are for servers that request their traits"


def _required(said: Mapping[str, str]) -> set[str]:
    found = ((_TRAIT_KEY.fullmatch(key), value) for key, value in said.items())
    return {match[1] for match, value in found if match is not None and value == "required"}


class RequireTenantAggregate(Filter):
    """Filter for hosts in aggregates that name the project in ``filter_tenant_id``, if there are any. If there are
    none, all hosts pass, unless such an aggregate is mandatory."""

    reads = ("project_id", "tenant_aggregates")

    def __init__(self, options: PluginOptions) -> None:
        super().__init__(options)
        group = options.scheduler
        self._is_mandatory = group is not None and group.placement_aggregate_required_for_tenants

    @property
    def name(self) -> str:
        return "require_tenant_aggregate"

    def wanted(self, request: PlacementRequest) -> bool:
        return request.tenant_aggregates or self._is_mandatory

    def by_aggregates(self, request: PlacementRequest) -> bool:
        return True

    def refuses(self, host: HostView, request: PlacementRequest) -> str | None:
        return None if request.project_id in projects_of(host.aggregates) else "not in an aggregate of the project"


# -- the table

class PrefilterRule(NamedTuple):
    """A prefilter. ``switch``: the option of ``[scheduler]`` that enables it; None: always enabled. ``met``: why it has
    no work here. ``of_image``: it only depends on the image, so it also applies to a rebuild."""

    name: str
    switch: str | None = None
    implies: Callable[[PlacementRequest], Traits] | None = None
    filter: type[Filter] | None = None
    of_image: bool = False
    met: str = ""
    reads: tuple[str, ...] = ("extra_specs", "image_properties")


_ANY_HOST = "the networks of this cloud have no segments, so every host can reach each of them"
RULES: tuple[PrefilterRule, ...] = (
    PrefilterRule("isolate_aggregates", "enable_isolated_aggregate_filtering", filter=IsolateAggregates),
    PrefilterRule("require_tenant_aggregate", "limit_tenants_to_placement_aggregate", filter=RequireTenantAggregate),
    PrefilterRule("map_az_to_placement_aggregate", met="AvailabilityZoneFilter checks the zone in every decision"),
    PrefilterRule("require_image_type_support", "query_placement_for_image_type_support", require_image_type_support,
                  of_image=True, reads=("image_disk_format",)),
    PrefilterRule("transform_image_metadata", "image_metadata_prefilter", transform_image_metadata, of_image=True),
    PrefilterRule("compute_status_filter",
                  met="ComputeFilter checks service and trait COMPUTE_STATUS_DISABLED in every "
                                      "decision"),
    PrefilterRule("accelerators_filter", implies=accelerators_filter),
    PrefilterRule("packed_virtqueue_filter", implies=packed_virtqueue_filter),
    PrefilterRule("routed_networks_filter", "query_placement_for_routed_network_aggregates", met=_ANY_HOST),
    PrefilterRule("remote_managed_ports_filter", met="this cloud has no remote-managed ports"),
    PrefilterRule("ephemeral_encryption_filter", implies=ephemeral_encryption_filter),
    PrefilterRule("virtio_sound_filter", implies=virtio_sound_filter),
    PrefilterRule("tpm_secret_security_filter", implies=tpm_secret_security_filter),
    PrefilterRule("owner_nova_filter", met="servers only get devices that their own host reported"),
)


#: Rules that the Compute API's reference implementation leaves to other parts.
OWN_RULES: tuple[PrefilterRule, ...] = (PrefilterRule("address_bits_filter", filter=AddressBits),)


def load(options: PluginOptions) -> tuple[Filter, ...]:
    """Return the enabled rules as filters. Without ``options.scheduler``, only the rules that are always enabled."""
    found: list[Filter] = []
    for rule in (*RULES, *OWN_RULES):
        if rule.switch is not None and not getattr(options.scheduler, rule.switch, False):
            continue
        if rule.met and rule.switch is not None:
            LOG.warning("[scheduler]%s has no effect: %s", rule.switch, rule.met)
        if rule.implies is not None:
            found.append(ImpliedTraits(rule, options))
        elif rule.filter is not None:
            found.append(rule.filter(options))
    return tuple(found)
