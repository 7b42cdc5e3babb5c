"""A conductor's options, in the form that its packages read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova.conf._options import Options

if TYPE_CHECKING:
    from nova.conductor.engine.deps import ConductorSettings


def settings(options: Options) -> ConductorSettings:
    """Return the options in the form that the conductor's packages read. Raises config.Wrong."""
    from nova.conductor.engine.deps import ConductorSettings, VpnSettings
    from nova.conductor.networking import network_options
    from nova.conf import quota
    from nova.model.numa import pci_aliases
    from nova.model.placement.ratios import ratios
    from nova.model.quota import periods

    limits = {quota.API_NAMES.get(name, name): getattr(options.quota, name) for name in quota.LIMITS}
    names = ("default_availability_zone", "internal_service_availability_zone", "default_schedule_zone",
             "instance_name_template", "service_down_time", "report_interval", "shutdown_timeout",
             "force_config_drive", "allow_resize_to_same_host", "instance_usage_audit", "instance_usage_audit_period",
             "reclaim_instance_interval", "resize_confirm_window", "rescue_timeout", "instance_build_timeout",
             "shelved_offload_time", "shelved_poll_interval", "instance_actions_kept", "max_local_block_devices",
             "reimage_timeout_per_gb", "enable_new_services")
    periods.parse(options.instance_usage_audit_period)
    networking = network_options.from_conf(options)
    floating = network_options.floating_from_conf(options)
    counted = ratios("[filter_scheduler]image_props_weight_setting",
                     options.filter_scheduler.image_props_weight_setting, usual=1.0)
    aliases = pci_aliases.parse(options.pci.alias)
    vpn = VpnSettings(**{name: getattr(options, name) for name in (
        "vpn_image_id", "vpn_flavor", "vpn_key_suffix", "boot_script_template", "dmz_net", "dmz_mask",
        "cnt_vpn_clients")}, cc_dmz=options.my_ip)
    return ConductorSettings(**{name: getattr(options, name) for name in names}, max_limit=options.api.max_limit,
                             cross_az_attach=options.cinder.cross_az_attach,
                             non_inheritable_image_properties=tuple(options.non_inheritable_image_properties),
                             max_attempts=options.scheduler.max_attempts, dhcp_domain=options.api.dhcp_domain,
                             pci_aliases=aliases, vpn=vpn,
                             deleted_retention_s=int(options.deleted_retention.total_seconds()),
                             instance_actions_retention_s=options.instance_actions_retention * 86400,
                             precache_concurrency=options.image_cache.precache_concurrency,
                             limit_tenants_to_placement_aggregate=options.scheduler.limit_tenants_to_placement_aggregate,
                             image_props_weight_multiplier=options.filter_scheduler.image_props_weight_multiplier,
                             image_props_weight_setting=counted,
                             quota_defaults={**_network_limits(options), **limits}, networking=networking,
                             floating=floating,
                             network_defaults=network_options.defaults_from_conf(options))


def _network_limits(options: Options) -> dict[str, int]:
    """Return nova-network's limits, which have no effect with Neutron."""
    from nova.conf import quota
    from nova.conf.network import neutron_in_use

    if neutron_in_use(options):
        return dict(quota.NETWORK_DEFAULTS)
    return {name: getattr(options.quota, name) for name in quota.NETWORK_LIMITS}
