"""``[filter_scheduler]``: which hosts are good, and which are better."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "filter_scheduler"

OPTS = [
    cfg.MultiStrOpt("available_filters", default=["nova.scheduler.filters.all_filters"],
                    help="Where filters are found: the dotted path of a class, or of a function that lists classes; "
                         "may be given several times. Your own filter is a subclass of nova.scheduler.filters.Filter."),
    cfg.ListOpt("enabled_filters",
                default=["ComputeFilter", "ComputeCapabilitiesFilter", "ImagePropertiesFilter",
                         "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter"],
                help="Class names of the filters that a host must pass, in their order. Free capacity, availability "
                     "zone and service state are checked always, whether or not ComputeFilter, "
                     "AvailabilityZoneFilter, RamFilter, CoreFilter and DiskFilter stand here."),
    cfg.ListOpt("weight_classes", default=["nova.scheduler.weights.all_weighers"],
                help="Which of the hosts that pass is best: dotted paths of weigher classes, or of functions that list "
                     "some. A host's weight is the sum over the weighers: the value, scaled to 0..1 between the "
                     "lowest and the highest host, times the multiplier. Your own weigher is a subclass of "
                     "nova.scheduler.weighers.Weigher."),
    cfg.IntOpt("host_subset_size", default=1, min=1,
               help="Choose at random among so many best hosts. More than 1 helps many schedulers not to run into one "
                    "another."),
    cfg.BoolOpt("shuffle_best_same_weighed_hosts", default=False,
                help="Choose at random among the hosts that share the best weight. Otherwise the host that was "
                     "known first is chosen."),
    cfg.FloatOpt("ram_weight_multiplier", default=1.0,
                 help="How much free memory counts: above 0 spreads servers, below 0 stacks them. Aggregate metadata "
                      "of the same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("cpu_weight_multiplier", default=1.0,
                 help="How much free virtual CPUs count: above 0 spreads servers, below 0 stacks them. Aggregate "
                      "metadata of the same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("disk_weight_multiplier", default=1.0,
                 help="How much free disk counts: above 0 spreads servers, below 0 stacks them. Aggregate metadata of "
                      "the same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("soft_affinity_weight_multiplier", default=1.0, min=0.0,
                 help="How much it counts that members of a server group with the policy soft-affinity are on a host "
                      "already; 0 makes the policy mean nothing. Aggregate metadata of the same name overrides it for "
                      "the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("soft_anti_affinity_weight_multiplier", default=1.0, min=0.0,
                 help="How much it counts that members of a server group with the policy soft-anti-affinity are on "
                      "other hosts; 0 makes the policy mean nothing. Aggregate metadata of the same name overrides it "
                      "for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("num_instances_weight_multiplier", default=0.0,
                 help="How much the number of servers on a host counts, whatever their size: below 0 spreads servers, "
                      "above 0 stacks them. Aggregate metadata of the same name overrides it for the aggregate's "
                      "hosts; the lowest wins."),
    cfg.FloatOpt("io_ops_weight_multiplier", default=-1.0,
                 help="How much it counts that servers of a host are being built, resized, moved, rescued or copied: "
                      "below 0 prefers hosts with fewer of them. Aggregate metadata of the same name overrides it for "
                      "the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("build_failure_weight_multiplier", default=1000000.0,
                 help="How much it counts that the last builds on a host failed: above 0 such hosts come last, until "
                      "one succeeds there or its nova-compute starts anew. Aggregate metadata of the same name "
                      "overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("cross_cell_move_weight_multiplier", default=1000000.0,
                 help="How much it counts, in a move, that a host is in the cell of the server's own. With one cell all "
                      "are."),
    cfg.FloatOpt("hypervisor_version_weight_multiplier", default=1.0,
                 help="How much a newer hypervisor counts; below 0 prefers older ones. Aggregate metadata of the same "
                      "name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("pci_weight_multiplier", default=1.0, min=0.0,
                 help="How much it counts that a host has fewer free PCI devices, so that those with devices are kept "
                      "for servers that ask for some. Aggregate metadata of the same name overrides it for the "
                      "aggregate's hosts; the lowest wins."),
    cfg.FloatOpt("image_props_weight_multiplier", default=0.0,
                 help="How much it counts that the images of a host's servers share properties with the request's: "
                      "above 0 brings such servers together, below 0 apart. Other than 0 it costs the conductor two "
                      "statements a request, one of which looks at every server's image. Aggregate metadata of the "
                      "same name overrides it for the aggregate's hosts, where it is not 0 here; the lowest wins."),
    cfg.ListOpt("image_props_weight_setting", default=[],
                help="Which properties of images these are, and how much each counts: NAME=NUMBER, or NAME alone for "
                     "1. Empty: all properties, each for 1. An example is os_distro=10,hw_machine_type=2."),
    cfg.IntOpt("max_io_ops_per_host", default=8, min=0,
               help="IoOpsFilter: how many servers of a host may be built, resized, moved, rescued or copied at one "
                    "time. With AggregateIoOpsFilter aggregate metadata of the same name overrides it for the "
                    "aggregate's hosts; the lowest wins."),
    cfg.IntOpt("max_instances_per_host", default=50, min=1,
               help="NumInstancesFilter: how many servers a host may have. With AggregateNumInstancesFilter aggregate "
                    "metadata of the same name overrides it for the aggregate's hosts; the lowest wins."),
    cfg.ListOpt("isolated_images", default=[],
                help="IsolatedHostsFilter: ids of images that run on isolated_hosts alone."),
    cfg.ListOpt("isolated_hosts", default=[],
                help="IsolatedHostsFilter: names of the hosts that are for isolated_images."),
    cfg.BoolOpt("restrict_isolated_hosts_to_isolated_images", default=True,
                help="IsolatedHostsFilter: whether other images are kept from isolated_hosts."),
    cfg.StrOpt("aggregate_image_properties_isolation_namespace",
               help="AggregateImagePropertiesIsolation: only keys of aggregate metadata that begin with this (and the "
                    "separator) are compared with image properties. Unset: all keys."),
    cfg.StrOpt("aggregate_image_properties_isolation_separator", default=".",
               help="What stands between that namespace and the rest of the key."),
    cfg.StrOpt("image_properties_default_architecture",
               help="The CPU architecture of images that do not say theirs (hw_architecture): x86_64, aarch64, ... "
                    "Unset: such images may run anywhere."),
]
