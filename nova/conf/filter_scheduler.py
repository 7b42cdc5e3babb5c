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
                help="Choose at random among the hosts that share the best weight. Otherwise it is the one that was "
                     "known first."),
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
    cfg.StrOpt("image_properties_default_architecture",
               help="The CPU architecture of images that do not say theirs (hw_architecture): x86_64, aarch64, ... "
                    "Unset: such images may run anywhere."),
]
