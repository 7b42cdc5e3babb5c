"""``[quota]``: what a project without limits of its own may use. -1 is no limit."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "quota"

_DEFAULTS = (
    ("instances", 10, "servers"), ("cores", 20, "virtual CPUs"), ("ram", 51200, "MB of memory"),
    ("metadata_items", 128, "metadata items a server"), ("injected_files", 5, "files to inject a server"),
    ("injected_file_content_bytes", 10240, "bytes an injected file"),
    ("injected_file_path_length", 255, "bytes of an injected file's path"), ("key_pairs", 100, "key pairs a user"),
    ("server_groups", 10, "server groups"), ("server_group_members", 10, "servers a server group"),
)

#: nova-network's own.
_NETWORK_DEFAULTS = (
    ("fixed_ips", -1, "fixed addresses of servers (not counted with VlanManager)"), ("floating_ips", 10,
     "floating addresses"), ("networks", 3, "networks made with os-tenant-networks (see enable_network_quota)"),
    ("security_groups", 10, "security groups"), ("security_group_rules", 20, "rules a security group"),
)
NETWORK_LIMITS = tuple(name for name, _default, _what in _NETWORK_DEFAULTS)

#: The options that are limits.
LIMITS = tuple(name for name, _default, _what in _DEFAULTS)
#: Where limits are kept: upstream's names.
WRITTEN, NOOP, UNIFIED = (f"nova.quota.{name}" for name in ("DbQuotaDriver", "NoopQuotaDriver", "UnifiedLimitsDriver"))

OPTS = [
    cfg.StrOpt("driver", default=WRITTEN, choices=(WRITTEN, NOOP, UNIFIED),
               help="Where limits are kept: in our database (DbQuotaDriver), nowhere (NoopQuotaDriver: nothing is "
                    "limited), or in Keystone (UnifiedLimitsDriver; see [oslo_limit])."),
    cfg.StrOpt("unified_limits_resource_strategy", default="require", choices=("require", "ignore"),
               help="What a resource without a registered limit in Keystone is limited to. require: those of "
                    "unified_limits_resource_list to 0, others not. ignore: those of the list not, others to 0."),
    cfg.ListOpt("unified_limits_resource_list", default=["servers"],
                help="Resources of unified_limits_resource_strategy: servers, class:VCPU, class:MEMORY_MB, ..."),
    *[cfg.IntOpt(name, default=default, min=-1, deprecated_group="DEFAULT", deprecated_name=f"quota_{name}",
                 help=f"Most {what}.") for name, default, what in _DEFAULTS],
    *[cfg.IntOpt(name, default=default, min=-1, deprecated_group="DEFAULT", deprecated_name=f"quota_{name}",
                 help=f"nova-network: most {what}.") for name, default, what in _NETWORK_DEFAULTS],
]

#: Option name -> the API's name of the resource, where they differ.
API_NAMES = {"injected_file_path_length": "injected_file_path_bytes"}
#: What old API versions list of nova-network's own with Neutron in its place.
NETWORK_DEFAULTS = {"fixed_ips": -1, "floating_ips": -1, "networks": 3, "security_groups": -1,
                    "security_group_rules": -1}
