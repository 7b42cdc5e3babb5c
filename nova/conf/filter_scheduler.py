"""``[filter_scheduler]``: host filters and weighers."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "filter_scheduler"

OPTS = [
    cfg.MultiStrOpt("available_filters", default=["nova.scheduler.filters.all_filters"],
                    help="Filters that can be enabled: the dotted path of a class, or of a function that lists "
                         "classes; may be given several times. A custom filter is a subclass of "
                         "nova.scheduler.filters.Filter."),
    cfg.ListOpt("enabled_filters",
                default=["ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter",
                         "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter"],
                help="Class names of the filters that a host must pass, in this order. Free capacity, availability "
                     "zone and service state are always checked, with or without ComputeFilter, "
                     "AvailabilityZoneFilter, RamFilter, CoreFilter and DiskFilter in this list."),
    cfg.ListOpt("weight_classes", default=["nova.scheduler.weights.all_weighers"],
                help="Weighers that rank the hosts that pass: dotted paths of classes, or of functions that list "
                     "some. A host's weight is the sum over the weighers of the value, scaled to 0..1 between the "
                     "lowest and the highest host, times the multiplier. A custom weigher is a subclass of "
                     "nova.scheduler.weighers.Weigher."),
    cfg.IntOpt("host_subset_size", default=1, min=1,
               help="Number of best hosts from which one is chosen at random. More than 1 reduces conflicts between "
                    "many schedulers."),
    cfg.BoolOpt("shuffle_best_same_weighed_hosts", default=False,
                help="Choose at random among the hosts that share the best weight. Off: the host known first is "
                     "chosen."),
    cfg.FloatOpt("ram_weight_multiplier", default=1.0,
                 help="Weight of free memory: above 0 spreads servers, below 0 stacks them. Aggregate metadata of "
                      "the same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("cpu_weight_multiplier", default=1.0,
                 help="Weight of free virtual CPUs: above 0 spreads servers, below 0 stacks them. Aggregate metadata "
                      "of the same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("disk_weight_multiplier", default=1.0,
                 help="Weight of free disk: above 0 spreads servers, below 0 stacks them. Aggregate metadata of the "
                      "same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("soft_affinity_weight_multiplier", default=1.0, min=0.0,
                 help="Weight of members of a server group with the policy soft-affinity that are on a host already; "
                      "0 disables the policy. Aggregate metadata of the same name overrides it for the aggregate's "
                      "hosts; the lowest wins."),
    cfg.FloatOpt("soft_anti_affinity_weight_multiplier", default=1.0, min=0.0,
                 help="Weight of members of a server group with the policy soft-anti-affinity that are on other "
                      "hosts; 0 disables the policy. Aggregate metadata of the same name overrides it for the "
                      "aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("num_instances_weight_multiplier", default=0.0,
                 help="Weight of the number of servers on a host, of any size: below 0 spreads servers, above 0 "
                      "stacks them. Aggregate metadata of the same name overrides it for the aggregate's hosts; the "
                      "lowest wins."),
    cfg.FloatOpt("io_ops_weight_multiplier", default=-1.0,
                 help="Weight of the number of servers on a host that are being built, resized, moved, rescued or "
                      "copied: below 0 prefers hosts with fewer of them. Aggregate metadata of the same name "
                      "overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("build_failure_weight_multiplier", default=1000000.0,
                 help="Weight of failed builds on a host: above 0 ranks such hosts last, until a build succeeds "
                      "there or its nova-compute restarts. Aggregate metadata of the same name overrides it for the "
                      "aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("cross_cell_move_weight_multiplier", default=1000000.0,
                 help="Weight of hosts in the server's own cell, when it is moved. With one cell, all hosts are in "
                      "it."),
    cfg.FloatOpt("hypervisor_version_weight_multiplier", default=1.0,
                 help="Weight of the hypervisor's version: above 0 prefers newer ones, below 0 older ones. Aggregate "
                      "metadata of the same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("pci_weight_multiplier", default=1.0, min=0.0,
                 help="Weight of having few free PCI devices, so that hosts with devices are kept for servers that "
                      "request some. Aggregate metadata of the same name overrides it for the aggregate's hosts; the "
                      "lowest wins."),
    cfg.FloatOpt("image_props_weight_multiplier", default=0.0,
                 help="Weight of image properties that a host's servers share with the request: above 0 groups such "
                      "servers, below 0 separates them. Other than 0, it costs the conductor two statements a "
                      "request, one of which reads every server's image. Aggregate metadata of the same name "
                      "overrides it for the aggregate's hosts, if it is not 0 here; the lowest wins."),
    cfg.ListOpt("image_props_weight_setting", default=[],
                help="Image properties to compare, with their weights: NAME=NUMBER, or NAME alone for 1. Empty: all "
                     "properties, each with weight 1. An example is os_distro=10,hw_machine_type=2."),
    cfg.IntOpt("max_io_ops_per_host", default=8, min=0,
               help="IoOpsFilter: maximum number of servers on a host that are being built, resized, moved, rescued "
                    "or copied at the same time. With AggregateIoOpsFilter, aggregate metadata of the same name "
                    "overrides it for the aggregate's hosts; the lowest wins."),
    cfg.IntOpt("max_instances_per_host", default=50, min=1,
               help="NumInstancesFilter: maximum number of servers on a host. With AggregateNumInstancesFilter, "
                    "aggregate metadata of the same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.ListOpt("isolated_images", default=[],
                help="IsolatedHostsFilter: ids of images that run only on isolated_hosts."),
    cfg.ListOpt("isolated_hosts", default=[],
                help="IsolatedHostsFilter: names of the hosts reserved for isolated_images."),
    cfg.BoolOpt("restrict_isolated_hosts_to_isolated_images", default=True,
                help="IsolatedHostsFilter: whether other images are excluded from isolated_hosts."),
    cfg.StrOpt("aggregate_image_properties_isolation_namespace",
               help="AggregateImagePropertiesIsolation: prefix of the aggregate metadata keys (followed by the "
                    "separator) that are compared with image properties. Unset: all keys."),
    cfg.StrOpt("aggregate_image_properties_isolation_separator", default=".",
               help="Separator between that namespace and the rest of the key."),
    cfg.StrOpt("image_properties_default_architecture",
               help="CPU architecture of images without hw_architecture: x86_64, aarch64, ... Unset: such images may "
                    "run anywhere."),
]


class FilterSchedulerOptions(Section, frozen=True, kw_only=True):
    """Values of ``[filter_scheduler]``."""

    available_filters: list[str]
    enabled_filters: list[str]
    weight_classes: list[str]
    host_subset_size: int
    shuffle_best_same_weighed_hosts: bool
    ram_weight_multiplier: float
    cpu_weight_multiplier: float
    disk_weight_multiplier: float
    soft_affinity_weight_multiplier: float
    soft_anti_affinity_weight_multiplier: float
    num_instances_weight_multiplier: float
    io_ops_weight_multiplier: float
    build_failure_weight_multiplier: float
    cross_cell_move_weight_multiplier: float
    hypervisor_version_weight_multiplier: float
    pci_weight_multiplier: float
    image_props_weight_multiplier: float
    image_props_weight_setting: list[str]
    max_io_ops_per_host: int
    max_instances_per_host: int
    isolated_images: list[str]
    isolated_hosts: list[str]
    restrict_isolated_hosts_to_isolated_images: bool
    aggregate_image_properties_isolation_namespace: str | None
    aggregate_image_properties_isolation_separator: str
    image_properties_default_architecture: str | None
