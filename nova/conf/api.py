"""``[api]``: how the compute API and the metadata service answer."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "api"

OPTS = [
    cfg.StrOpt("auth_strategy", default="keystone", choices=[
        ("keystone", "Tokens are checked with Keystone ([keystone_authtoken])."),
        ("noauth2", "The caller is believed: X-Auth-Token is USER:PROJECT. For trials on one machine only.")],
               deprecated_group="DEFAULT", help="How the compute API learns who asks."),
    cfg.BoolOpt("noauth2_anywhere", default=False,
                help="Let what believes every caller (auth_strategy = noauth2, s3_believe_all) listen on other addresses than this "
                     "machine's own, 127.0.0.1 and ::1: for trials in a network that nobody else reaches."),
    cfg.IntOpt("max_limit", default=1000, min=0, deprecated_group="DEFAULT", deprecated_name="osapi_max_limit",
               help="The most entries a page of a list has. A larger limit asked for is cut down to it."),
    cfg.IntOpt("project_requests_at_once", default=3, min=1,
               help="How many requests of a project a process works on at a time while other projects ask; its others "
                    "wait. A project that asks alone does not wait."),
    cfg.StrOpt("compute_link_prefix", deprecated_group="DEFAULT", deprecated_name="osapi_compute_link_prefix",
               help="Where clients reach the compute API, for links in its answers (https://cloud.example/compute). "
                    "Unset: links repeat what the request came to."),
    cfg.StrOpt("glance_link_prefix", deprecated_group="DEFAULT", deprecated_name="osapi_glance_link_prefix",
               help="The same for links to images, which Glance serves."),
    cfg.BoolOpt("enable_instance_password", default=True, deprecated_group="DEFAULT",
                help="Make an administrator's password for a new server, and answer with it (adminPass). Switch off "
                     "where no guest uses it."),
    cfg.BoolOpt("list_records_by_skipping_down_cells", default=True,
                help="While a cell's database does not answer, leave its servers out of some lists: lists below "
                     "version 2.69, and lists with filters, sorting or pages. Off: such lists fail, so that a "
                     "missing server does not look like a deleted server."),
    cfg.BoolOpt("use_neutron_default_nets", default=False, deprecated_group="DEFAULT",
                help="With Neutron: show every project the networks of neutron_default_tenant_id, too, where old "
                     "versions of the API list a project's networks. Read by nova-conductor."),
    cfg.StrOpt("neutron_default_tenant_id", default="default", deprecated_group="DEFAULT",
               help="Project whose networks use_neutron_default_nets shows to everybody."),
    cfg.StrOpt("dhcp_domain", default="novalocal", deprecated_group="DEFAULT",
               help="The domain of guests' host names. Empty: none."),
    cfg.IntOpt("metadata_cache_expiration", default=15, min=0, deprecated_group="DEFAULT",
               help="Seconds for which the metadata service remembers what it told a guest."),
    cfg.BoolOpt("use_forwarded_for", default=False, deprecated_group="DEFAULT",
                help="The metadata service believes the header X-Forwarded-For when it looks for the guest that asks. "
                     "Only behind a proxy that writes this header anew: whoever else reaches the service could ask in "
                     "any guest's name."),
    cfg.ListOpt("vendordata_providers", default=["StaticJSON"], deprecated_group="DEFAULT",
                help="Where vendordata comes from: StaticJSON (a file), DynamicJSON (services asked for each guest)."),
    cfg.StrOpt("vendordata_jsonfile_path", deprecated_group="DEFAULT",
               help="The JSON file that StaticJSON gives to every guest."),
    cfg.ListOpt("vendordata_dynamic_targets", default=[], deprecated_group="DEFAULT",
                help="Services that DynamicJSON asks: NAME@URL, separated by commas."),
    cfg.IntOpt("vendordata_dynamic_connect_timeout", default=5, min=3, deprecated_group="DEFAULT",
               help="Seconds within which such a service must take the connection."),
    cfg.IntOpt("vendordata_dynamic_read_timeout", default=5, min=0, deprecated_group="DEFAULT",
               help="Seconds within which it must answer."),
    cfg.StrOpt("vendordata_dynamic_ssl_certfile", default="", deprecated_group="DEFAULT",
               help="File of the certificates by which such services are known. Empty: the system's."),
    cfg.BoolOpt("vendordata_dynamic_failure_fatal", default=False, deprecated_group="DEFAULT",
                help="Whether a server fails to start when such a service does not answer."),
    cfg.StrOpt("config_drive_skip_versions", deprecated_group="DEFAULT",
               default="1.0 2007-01-19 2007-03-01 2007-08-29 2007-10-10 2007-12-15 2008-02-01 2008-09-01",
               help="Versions of the metadata that are not written to config drives."),
]
