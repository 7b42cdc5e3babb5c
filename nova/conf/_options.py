"""All values of nova.conf, with their types. :mod:`nova.configuration` reads them once, after their checks."""

from __future__ import annotations

import datetime
from typing import Self, get_type_hints

from oslo_config import cfg

from nova.conf._section import Section
from nova.conf.api import ApiSectionOptions
from nova.conf.api_database import ApiDatabaseOptions
from nova.conf.barbican import BarbicanOptions
from nova.conf.cinder import CinderOptions
from nova.conf.compute_section import ComputeOptions
from nova.conf.conductor import ConductorOptions
from nova.conf.console import ConsoleOptions
from nova.conf.consoleauth import ConsoleauthOptions
from nova.conf.database import DatabaseOptions
from nova.conf.doctor import DoctorOptions
from nova.conf.fake import FakeOptions
from nova.conf.filter_scheduler import FilterSchedulerOptions
from nova.conf.glance import GlanceOptions
from nova.conf.image_cache import ImageCacheOptions
from nova.conf.image_proxy import ImageProxyOptions
from nova.conf.key_manager import KeyManagerOptions
from nova.conf.keystone import KeystoneOptions
from nova.conf.libvirt import LibvirtOptions
from nova.conf.metrics import MetricsOptions
from nova.conf.mks import MksOptions
from nova.conf.monitoring import MonitoringOptions
from nova.conf.neutron import NeutronOptions
from nova.conf.notifications import NotificationsOptions
from nova.conf.os_brick import OsBrickOptions
from nova.conf.oslo_limit import OsloLimitOptions
from nova.conf.pci import PciOptions
from nova.conf.placement_api import PlacementApiOptions
from nova.conf.privileged import PrivilegedOptions
from nova.conf.quota import QuotaOptions
from nova.conf.scheduler import SchedulerOptions
from nova.conf.serial_console import SerialConsoleOptions
from nova.conf.service_user import ServiceUserOptions
from nova.conf.spice import SpiceOptions
from nova.conf.tracing import TracingOptions
from nova.conf.upgrade_levels import UpgradeLevelsOptions
from nova.conf.vnc import VncOptions
from nova.conf.workarounds import WorkaroundsOptions
from nova.conf.wsgi import WsgiOptions


class Options(Section, frozen=True, kw_only=True):
    """Values of nova.conf: options of ``[DEFAULT]``, by module of :mod:`nova.conf`; then sections by name."""

    # base
    host: str
    my_ip: str
    state_path: str
    rootwrap_config: str
    hosts_transport_url: str | None
    long_rpc_timeout: int
    long_rpc_silence: int
    report_interval: int
    service_down_time: int
    enable_new_services: bool
    graceful_shutdown_timeout: int
    default_availability_zone: str
    internal_service_availability_zone: str
    default_schedule_zone: str | None
    instance_name_template: str
    shutdown_timeout: int
    allow_resize_to_same_host: bool
    force_config_drive: bool
    deleted_retention: datetime.timedelta
    # bundles
    image_decryption_dir: str
    image_decryption_jobs_dir: str
    image_decryption_workers: int
    image_decryption_largest_gb: int
    # cert
    ca_path: str
    ca_file: str
    key_file: str
    crl_file: str
    keys_path: str
    use_project_ca: bool
    user_cert_subject: str
    project_cert_subject: str
    vpn_image_id: str
    vpn_flavor: str
    vpn_key_suffix: str
    boot_script_template: str | None
    dmz_net: str
    dmz_mask: str
    # compute
    compute_driver: str | None
    instances_path: str
    my_block_storage_ip: str
    cpu_allocation_ratio: float | None
    ram_allocation_ratio: float | None
    disk_allocation_ratio: float | None
    initial_cpu_allocation_ratio: float
    initial_ram_allocation_ratio: float
    initial_disk_allocation_ratio: float
    reserved_host_memory_mb: int
    reserved_host_disk_mb: int
    reserved_host_cpus: int
    reserved_huge_pages: list[str]
    update_resources_interval: int
    compute_monitors: list[str]
    firewall_driver: str | None
    allow_same_net_traffic: bool
    max_concurrent_builds: int
    max_concurrent_live_migrations: int
    max_concurrent_snapshots: int
    vif_plugging_timeout: int
    vif_plugging_is_fatal: bool
    resume_guests_state_on_host_boot: bool
    fence_retention: datetime.timedelta
    sync_power_state_interval: int
    volume_usage_poll_interval: int
    running_deleted_instance_action: str
    running_deleted_instance_poll_interval: int
    running_deleted_instance_timeout: int
    # ec2
    ec2_listen: str
    ec2_listen_port: int
    ec2_workers: int | None
    ec2_host: str
    ec2_port: int
    ec2_scheme: str
    ec2_path: str
    region_list: list[str]
    ec2_private_dns_show_ip: bool
    ec2_strict_validation: bool
    keystone_ec2_url: str | None
    ec2_signature_versions: list[str]
    ec2_timestamp_expiry: int
    # floating
    default_floating_pool: str
    auto_assign_floating_ip: bool
    floating_ip_dns_manager: str
    instance_dns_manager: str
    instance_dns_domain: str
    ldap_dns_url: str
    ldap_dns_user: str
    ldap_dns_password: str
    ldap_dns_soa_hostmaster: str
    ldap_dns_servers: list[str]
    ldap_dns_base_dn: str
    ldap_dns_soa_refresh: str
    ldap_dns_soa_retry: str
    ldap_dns_soa_expiry: str
    ldap_dns_soa_minimum: str
    # guests
    use_cow_images: bool
    force_raw_images: bool
    preallocate_images: str
    default_ephemeral_format: str | None
    config_drive_format: str
    config_drive_size_limit_mb: int
    pointer_model: str
    # logs
    log_config_append: str | None
    log_date_format: str | None
    use_journal: bool
    syslog_log_facility: str | None
    watch_log_file: bool
    debug: bool
    log_file: str | None
    log_dir: str | None
    use_syslog: bool
    default_log_levels: list[str]
    use_json: bool
    log_rotation_type: str
    max_logfile_count: int
    max_logfile_size_mb: int
    log_rotate_interval: int
    log_rotate_interval_type: str
    use_stderr: bool
    logging_context_format_string: str | None
    logging_default_format_string: str | None
    logging_debug_format_suffix: str | None
    logging_exception_prefix: str | None
    logging_user_identity_format: str | None
    instance_uuid_format: str | None
    log_color: bool
    # network
    use_neutron: bool | None
    network_manager: str
    multi_host: bool
    num_networks: int
    network_size: int
    flat_network_bridge: str | None
    flat_interface: str | None
    flat_network_dns: str
    flat_injected: bool
    injected_network_template: str | None
    vlan_interface: str | None
    use_ipv6: bool
    share_dhcp_address: bool
    teardown_unused_network_gateway: bool
    use_single_default_gateway: bool
    linuxnet_interface_driver: str
    linuxnet_ovs_integration_bridge: str
    ovs_vsctl_timeout: int
    network_device_mtu: int | None
    fake_network: bool
    networks_path: str
    public_interface: str
    routing_source_ip: str
    metadata_host: str
    metadata_port: int
    dmz_cidr: list[str]
    guest_forbidden_ranges: list[str]
    force_snat_range: list[str]
    forward_bridge_interface: list[str]
    iptables_top_regex: str
    iptables_bottom_regex: str
    iptables_drop_action: str
    send_arp_for_ha: bool
    send_arp_for_ha_count: int
    dhcp_lease_time: int
    force_dhcp_release: bool
    dhcpbridge: str
    dhcpbridge_flagfile: list[str]
    dnsmasq_config_file: str
    dns_server: list[str]
    use_network_dns_servers: bool
    # network_pools
    vlan_start: int
    vpn_ip: str
    vpn_start: int
    cnt_vpn_clients: int
    gateway: str | None
    gateway_v6: str | None
    fixed_range_v6: str
    ipv6_backend: str
    fixed_ip_disassociate_timeout: int
    create_unique_mac_address_attempts: int
    update_dns_entries: bool
    dns_update_periodic_interval: int
    default_access_ip_network_name: str | None
    enable_network_quota: bool
    # objectstore
    s3_listen: str
    s3_listen_port: int
    s3_workers: int | None
    buckets_path: str
    s3_believe_all: bool
    s3_longest_object: int
    s3_project_bytes: int
    s3_project_objects: int
    s3_reserved_disk_mb: int
    s3_upload_expiry: int
    s3_client_timeout: int
    s3_longest_transfer: int
    # osapi
    enabled_apis: list[str]
    osapi_compute_listen: str
    osapi_compute_listen_port: int
    osapi_compute_workers: int | None
    metadata_listen: str
    metadata_listen_port: int
    metadata_workers: int | None
    max_local_block_devices: int
    password_length: int
    # proxies
    ssl_only: bool
    source_is_ipv6: bool
    cert: str
    key: str | None
    web: str | None
    record: str | None
    # snapshots
    non_inheritable_image_properties: list[str]
    # upkeep
    reclaim_instance_interval: int
    resize_confirm_window: int
    rescue_timeout: int
    instance_build_timeout: int
    shelved_offload_time: int
    shelved_poll_interval: int
    instance_actions_retention: int
    instance_actions_kept: int
    heal_instance_info_cache_interval: int
    # usage
    instance_usage_audit: bool
    instance_usage_audit_period: str
    # volumes
    reimage_timeout_per_gb: int
    # Sections.
    api: ApiSectionOptions
    api_database: ApiDatabaseOptions
    barbican: BarbicanOptions
    cinder: CinderOptions
    compute: ComputeOptions
    conductor: ConductorOptions
    console: ConsoleOptions
    consoleauth: ConsoleauthOptions
    database: DatabaseOptions
    doctor: DoctorOptions
    fake: FakeOptions
    filter_scheduler: FilterSchedulerOptions
    glance: GlanceOptions
    image_cache: ImageCacheOptions
    image_proxy: ImageProxyOptions
    key_manager: KeyManagerOptions
    keystone: KeystoneOptions
    libvirt: LibvirtOptions
    metrics: MetricsOptions
    mks: MksOptions
    monitoring: MonitoringOptions
    neutron: NeutronOptions
    notifications: NotificationsOptions
    os_brick: OsBrickOptions
    oslo_limit: OsloLimitOptions
    pci: PciOptions
    placement_api: PlacementApiOptions
    privileged: PrivilegedOptions
    quota: QuotaOptions
    scheduler: SchedulerOptions
    serial_console: SerialConsoleOptions
    service_user: ServiceUserOptions
    spice: SpiceOptions
    tracing: TracingOptions
    upgrade_levels: UpgradeLevelsOptions
    vnc: VncOptions
    workarounds: WorkaroundsOptions
    wsgi: WsgiOptions
    # For oslo_conf.
    source: cfg.ConfigOpts

    @classmethod
    def of(cls, group: object) -> Self:
        """Return the values of oslo.config's object, as they are now."""
        found: dict[str, object] = {"source": group}
        for name, kind in get_type_hints(cls).items():
            if name not in found:
                value = getattr(group, name)
                found[name] = kind.of(value) if isinstance(kind, type) and issubclass(kind, Section) else value
        return cls(**found)  # type: ignore[arg-type]


def oslo_conf(options: Options | cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Return oslo.config's object, from which the options were read: for libraries, which read their own sections from
    it, and for the files themselves."""
    return options.source if isinstance(options, Options) else options
