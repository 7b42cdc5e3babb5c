"""``[scheduler]``: selection of hosts for servers."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "scheduler"

OPTS = [
    cfg.IntOpt("workers", min=0,
               help="Number of nova-scheduler processes. Each has the state of all hosts (about 2 KB per host) and "
                    "serves its own requests. Unset: one for each CPU."),
    cfg.IntOpt("max_attempts", default=3, min=1,
               help="Number of hosts tried for a server before it ends in ERROR: the scheduler's choice, then "
                    "alternates. 1: no retry. A host that other servers filled meanwhile does not count."),
    cfg.BoolOpt("limit_tenants_to_placement_aggregate", default=False,
                help="Run servers of a project with reserved aggregates (metadata filter_tenant_id, or keys that "
                     "begin with it) only on the hosts of these aggregates. Other projects' servers run anywhere; to "
                     "exclude them, use AggregateMultiTenancyIsolation."),
    cfg.BoolOpt("placement_aggregate_required_for_tenants", default=False,
                help="With limit_tenants_to_placement_aggregate: a project without such an aggregate gets no host."),
    cfg.BoolOpt("query_placement_for_image_type_support", default=False,
                help="Select only hosts that support the image's disk format (trait COMPUTE_IMAGE_TYPE_*)."),
    cfg.BoolOpt("enable_isolated_aggregate_filtering", default=False,
                help="Reserve hosts of an aggregate with metadata trait:NAME=required for servers whose flavor or "
                     "image requires that trait in the same form."),
    cfg.BoolOpt("image_metadata_prefilter", default=False,
                help="Select only hosts with traits for the guest devices that the image's properties request: "
                     "buses, video, network, sound and IOMMU models, architecture, firmware."),
    cfg.BoolOpt("query_placement_for_routed_network_aggregates", default=False,
                help="Select only hosts near the segment of a routed network. Without effect: networks of this cloud "
                     "have no segments."),
    cfg.IntOpt("host_state_sweep_interval", default=60, min=1,
               help="Seconds between two requests to the conductor for host changes that this scheduler has missed. "
                    "Changes are sent as they happen; this recovers lost messages."),
]


class SchedulerOptions(Section, frozen=True, kw_only=True):
    """Values of ``[scheduler]``."""

    workers: int | None
    max_attempts: int
    limit_tenants_to_placement_aggregate: bool
    placement_aggregate_required_for_tenants: bool
    query_placement_for_image_type_support: bool
    enable_isolated_aggregate_filtering: bool
    image_metadata_prefilter: bool
    query_placement_for_routed_network_aggregates: bool
    host_state_sweep_interval: int
