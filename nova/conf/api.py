"""``[api]``: responses of the compute API and the metadata service."""

from __future__ import annotations

from oslo_config import cfg

from nova.conf._section import Section

GROUP = "api"

OPTS = [
    cfg.StrOpt("auth_strategy", default="keystone", choices=[
        ("keystone", "Tokens are checked with Keystone ([keystone_authtoken])."),
        ("noauth2", "No authentication: X-Auth-Token is USER:PROJECT. For trials on one machine only.")],
               deprecated_group="DEFAULT", help="How the compute API authenticates requests."),
    cfg.BoolOpt("noauth2_anywhere", default=False,
                help="Let services that believe every caller (auth_strategy = noauth2, s3_believe_all) listen on "
                     "addresses other than this machine's own, 127.0.0.1 and ::1: for trials in an isolated network."),
    cfg.IntOpt("max_limit", default=1000, min=0, deprecated_group="DEFAULT", deprecated_name="osapi_max_limit",
               help="Maximum number of entries in a page of a list. Larger requested limits are reduced to it."),
    cfg.IntOpt("project_requests_at_once", default=3, min=1,
               help="Number of a project's requests that a process works on at the same time while other projects "
                    "have requests; more wait. Without other projects, none waits."),
    cfg.StrOpt("compute_link_prefix", deprecated_group="DEFAULT", deprecated_name="osapi_compute_link_prefix",
               help="Prefix of links to the compute API in responses (https://cloud.example/compute). Unset: links "
                    "repeat the address of the request."),
    cfg.StrOpt("glance_link_prefix", deprecated_group="DEFAULT", deprecated_name="osapi_glance_link_prefix",
               help="Prefix of links to images, which Glance serves."),
    cfg.BoolOpt("enable_instance_password", default=True, deprecated_group="DEFAULT",
                help="Generate an administrator password for each new server, and return it in the response "
                     "(adminPass). Disable it if guests do not use it."),
    cfg.BoolOpt("list_records_by_skipping_down_cells", default=True,
                help="While a cell's database is unavailable, omit its servers from some lists: lists below version "
                     "2.69, and lists with filters, sorting or pages. Off: such lists fail, so that a missing server "
                     "does not look like a deleted server."),
    cfg.BoolOpt("use_neutron_default_nets", default=False, deprecated_group="DEFAULT",
                help="With Neutron: also show every project the networks of neutron_default_tenant_id, in old API "
                     "versions that list a project's networks. Read by nova-conductor."),
    cfg.StrOpt("neutron_default_tenant_id", default="default", deprecated_group="DEFAULT",
               help="Project whose networks use_neutron_default_nets shows to all projects."),
    cfg.StrOpt("dhcp_domain", default="novalocal", deprecated_group="DEFAULT",
               help="Domain of guests' host names. Empty: none."),
    cfg.IntOpt("metadata_cache_expiration", default=15, min=0, deprecated_group="DEFAULT",
               help="Seconds for which the metadata service caches a guest's metadata."),
    cfg.BoolOpt("use_forwarded_for", default=False, deprecated_group="DEFAULT",
                help="The metadata service trusts the header X-Forwarded-For to identify the guest. Only behind a "
                     "proxy that overwrites this header: any other client could read the metadata of any guest."),
    cfg.ListOpt("vendordata_providers", default=["StaticJSON"], deprecated_group="DEFAULT",
                help="Sources of vendordata: StaticJSON (a file), DynamicJSON (services called for each guest)."),
    cfg.StrOpt("vendordata_jsonfile_path", deprecated_group="DEFAULT",
               help="JSON file that StaticJSON returns to every guest."),
    cfg.ListOpt("vendordata_dynamic_targets", default=[], deprecated_group="DEFAULT",
                help="Services called by DynamicJSON: NAME@URL, separated by commas."),
    cfg.IntOpt("vendordata_dynamic_connect_timeout", default=5, min=3, deprecated_group="DEFAULT",
               help="Seconds to wait for a connection to such a service."),
    cfg.IntOpt("vendordata_dynamic_read_timeout", default=5, min=0, deprecated_group="DEFAULT",
               help="Seconds to wait for a response of such a service."),
    cfg.StrOpt("vendordata_dynamic_ssl_certfile", default="", deprecated_group="DEFAULT",
               help="File of the CA certificates for such services. Empty: the system's."),
    cfg.BoolOpt("vendordata_dynamic_failure_fatal", default=False, deprecated_group="DEFAULT",
                help="Whether a server fails to start if such a service is unavailable."),
    cfg.StrOpt("config_drive_skip_versions", deprecated_group="DEFAULT",
               default="1.0 2007-01-19 2007-03-01 2007-08-29 2007-10-10 2007-12-15 2008-02-01 2008-09-01",
               help="Metadata versions that are not written to config drives."),
]


class ApiSectionOptions(Section, frozen=True, kw_only=True):
    """Values of ``[api]``."""

    auth_strategy: str
    noauth2_anywhere: bool
    max_limit: int
    project_requests_at_once: int
    compute_link_prefix: str | None
    glance_link_prefix: str | None
    enable_instance_password: bool
    list_records_by_skipping_down_cells: bool
    use_neutron_default_nets: bool
    neutron_default_tenant_id: str
    dhcp_domain: str
    metadata_cache_expiration: int
    use_forwarded_for: bool
    vendordata_providers: list[str]
    vendordata_jsonfile_path: str | None
    vendordata_dynamic_targets: list[str]
    vendordata_dynamic_connect_timeout: int
    vendordata_dynamic_read_timeout: int
    vendordata_dynamic_ssl_certfile: str
    vendordata_dynamic_failure_fatal: bool
    config_drive_skip_versions: str
