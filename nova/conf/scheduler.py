"""``[scheduler]``: how servers find their hosts."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "scheduler"

OPTS = [
    cfg.IntOpt("workers", min=0,
               help="How many nova-scheduler processes to run. Each knows all hosts (about 2 KB a host) and answers "
                    "requests of its own. Unset: as many as there are CPUs."),
    cfg.IntOpt("max_attempts", default=3, min=1,
               help="How many hosts are tried for a server before it ends in ERROR: the scheduler's choice, then "
                    "others. 1: no second try. A host that other servers filled meanwhile does not count."),
    cfg.BoolOpt("limit_tenants_to_placement_aggregate", default=False,
                help="Servers of a project for which aggregates are set aside (metadata filter_tenant_id, or keys that "
                     "begin with it) run on the hosts of these aggregates alone. Other projects run anywhere; to keep "
                     "them away, use AggregateMultiTenancyIsolation."),
    cfg.BoolOpt("placement_aggregate_required_for_tenants", default=False,
                help="With limit_tenants_to_placement_aggregate: a project without such an aggregate gets no host."),
    cfg.BoolOpt("query_placement_for_image_type_support", default=False,
                help="Only hosts that can make disks of the image's format (trait COMPUTE_IMAGE_TYPE_*)."),
    cfg.BoolOpt("enable_isolated_aggregate_filtering", default=False,
                help="Hosts of an aggregate with metadata trait:NAME=required take only servers whose flavor or image "
                     "asks for that trait in the same words."),
    cfg.BoolOpt("image_metadata_prefilter", default=False,
                help="Only hosts that have what the image's properties ask of the guest's devices, as traits: buses, "
                     "video, network, sound and IOMMU models, architecture, firmware."),
    cfg.BoolOpt("query_placement_for_routed_network_aggregates", default=False,
                help="Only hosts near the segment of a routed network. No network of this cloud has segments: it changes "
                     "nothing."),
    cfg.IntOpt("host_state_sweep_interval", default=60, min=1,
               help="Seconds between two questions to the conductor for what this scheduler does not know of the hosts "
                    "yet. Changes are told as they happen; this repairs what got lost on the way."),
]
