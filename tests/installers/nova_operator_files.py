"""What nova-operator and edpm-ansible render. They are in no registry: their files are data here."""

from __future__ import annotations

from dataclasses import dataclass

from tests.installers.pods import Pod
from tests.installers.site import Options, Site, rendered

CONFIG, APACHE = "/srv/operator", "/etc/httpd/conf/httpd.conf"
PORTS = {"nova-api": 8774, "nova-metadata": 8775, "nova-novncproxy": 6080}
#: Debian's modules, the image's virtual environment, a volume that a second container reads.
MODULES, HOME, LOGS = "/usr/lib/apache2/modules", "/var/lib/openstack", "/var/log/nova"
HTTPD = """ServerRoot /tmp/apache
PidFile /tmp/apache/pid
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
KeepAliveTimeout 15
User nova
Group nova
{modules}
ErrorLog "|/bin/cat"
WSGISocketPrefix /tmp/apache/wsgi
<VirtualHost *:{port}>
    WSGIDaemonProcess {name} processes=2 threads=1 display-name={name} python-home={home}
    WSGIProcessGroup {name}
    WSGIApplicationGroup %{{GLOBAL}}
    WSGIPassAuthorization On
    WSGIScriptAlias / {bin}/{name}-wsgi
    <Directory {bin}>
        Require all granted
    </Directory>
</VirtualHost>
"""


@dataclass(frozen=True)
class Cell:
    """``vhost``: of its broker; cell0 has the API's."""

    name: str
    vhost: str

    @property
    def database(self) -> str:
        return f"nova_{self.name}"


class Plane:
    """A control plane with cell0 and cell1, and one host."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.cells = [Cell("cell0", "nova"), Cell("cell1", "cell1")]
        self._credentials = {
            "auth_type": "password", "auth_url": site.url("keystone"), "username": "nova",
            "password": site.password("nova"), "project_name": "service", "region_name": "RegionOne",
            "project_domain_name": "Default", "user_domain_name": "Default"}
        api = self._api_databases() | self._cell_database(self.cell("cell0"))
        cell1 = self._cell_database(self.cell("cell1"))
        self._write("nova-api", self._shared("cell0"), api, {"DEFAULT": {"log_file": f"{LOGS}/nova-api.log"}})
        self._write("nova-scheduler", self._shared("cell0"), api)
        self._write("nova-metadata", self._shared("cell1"), cell1, {"api": {"local_metadata_per_cell": "false"}})
        self._write("nova-cell1-novncproxy", self._shared("cell1"), cell1)
        self._write("nova-compute", self._shared("cell1"))
        for cell in self.cells:
            self._write_cell(cell)
        for name in ("nova-api", "nova-metadata"):
            site.write(f"{CONFIG}/{name}/httpd.conf", _httpd(name), mode="0444")
        site.machine.ok(f"touch {CONFIG}/empty")

    # --- pods ---------------------------------------------------------------------------------------------------------
    def mounted(self, name: str) -> dict[str, str]:
        """A pod's /etc/nova: an empty nova.conf, and all that it says in a folder beside it."""
        own = f"{CONFIG}/{name}"
        found = {"/etc/nova/nova.conf": f"{CONFIG}/empty", "/etc/nova/nova.conf.d/01-nova.conf": f"{own}/01-nova.conf",
                 **{f"/etc/nova/{one}": f"/root/nova/etc/nova/{one}"
                    for one in ("api-paste.ini", "rootwrap.conf", "rootwrap.d")}}
        return found | ({APACHE: f"{own}/httpd.conf"} if name in PORTS else {})

    def pod(self, name: str, script: str) -> Pod:
        return Pod(name, script, self.mounted(name), folders={LOGS: LOGS})

    def job(self, name: str, script: str, cell: Cell, removed: Cell | None = None) -> Pod:
        """A job has both databases, of ``cell``. ``removed``: the cell that it is about, if that is another one."""
        about = removed or cell
        return Pod(name, script, self.mounted(f"{cell.name}-job"), environment={"CELL_NAME": about.name})

    # --- cells --------------------------------------------------------------------------------------------------------
    def cell(self, name: str) -> Cell:
        return next(cell for cell in self.cells if cell.name == name)

    def add(self, name: str) -> Cell:
        added = Cell(name, name)
        self.cells.append(added)
        self._write_cell(added)
        return added

    def _write_cell(self, cell: Cell) -> None:
        """Of its conductor and its jobs: a conductor of cell0 is the super conductor, the others have no API."""
        shared, own = self._shared(cell.name), self._cell_database(cell)
        api = self._api_databases()
        self._write(f"nova-{cell.name}-conductor", shared, own, api if cell.name == "cell0" else {})
        self._write(f"{cell.name}-job", shared, own, api)

    # --- options ------------------------------------------------------------------------------------------------------
    def _write(self, name: str, *parts: Options) -> None:
        merged: dict[str, dict[str, object]] = {}
        for part in parts:
            for section, options in part.items():
                merged.setdefault(section, {}).update(options)
        self.site.write(f"{CONFIG}/{name}/01-nova.conf", rendered(merged), "nova:nova", "0600")

    def _api_databases(self) -> Options:
        return {"api_database": {"connection": self.site.database("nova_api"), "max_retries": -1, "retry_interval": 1}}

    def _cell_database(self, cell: Cell) -> Options:
        return {"database": {"connection": self.site.database(cell.database), "max_retries": -1, "retry_interval": 1}}

    def _shared(self, cell: str) -> Options:
        vhost = self.cell(cell).vhost
        broker = self.site.broker(vhost)
        return {
            "DEFAULT": {
                "state_path": "/var/lib/nova", "allow_resize_to_same_host": "true", "debug": "false",
                "my_ip": "127.0.0.1", "enabled_apis": "osapi_compute,metadata", "osapi_compute_workers": 1,
                "metadata_workers": 1, "transport_url": broker, "log_rotation_type": "size", "max_logfile_count": 1,
                "max_logfile_size_mb": 20, "compute_driver": "libvirt.LibvirtDriver", "mkisofs_cmd": "genisoimage",
                "reserved_host_memory_mb": 0, "instance_usage_audit": "true", "instance_usage_audit_period": "hour",
                "max_concurrent_live_migrations": 1, "initial_cpu_allocation_ratio": 4.0,
                "initial_ram_allocation_ratio": 1.0, "initial_disk_allocation_ratio": 0.9},
            "api": {"auth_strategy": "keystone"},
            "cache": {"enabled": "true", "backend": "oslo_cache.memcache_pool", "memcache_servers": "127.0.0.1:11211",
                      "memcache_dead_retry": 30, "memcache_socket_timeout": 0.5,
                      "memcache_pool_connection_get_timeout": 1, "tls_enabled": "false"},
            "conductor": {"workers": 1},
            "scheduler": {"workers": 1, "max_attempts": 10, "discover_hosts_in_cells_interval": -1,
                          "limit_tenants_to_placement_aggregate": "true",
                          "placement_aggregate_required_for_tenants": "false",
                          "query_placement_for_routed_network_aggregates": "true",
                          "query_placement_for_availability_zone": "true",
                          "query_placement_for_image_type_support": "true",
                          "enable_isolated_aggregate_filtering": "true", "image_metadata_prefilter": "true"},
            "filter_scheduler": {
                "available_filters": "nova.scheduler.filters.all_filters", "shuffle_best_same_weighed_hosts": "true",
                "enabled_filters": "ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,"
                                   "ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter"},
            "keystone_authtoken": {**self._credentials, "www_authenticate_uri": self.site.url("keystone"),
                                   "service_token_roles_required": "true", "service_type": "compute",
                                   "memcached_servers": "127.0.0.1:11211", "memcache_tls_enabled": "false"},
            "service_user": {**self._credentials, "send_service_user_token": "true"},
            "placement": self._credentials, "glance": self._credentials,
            "neutron": {**self._credentials, "service_metadata_proxy": "true",
                        "metadata_proxy_shared_secret": "of-neutron"},
            "cinder": {**self._credentials, "catalog_info": "block-storage::internalURL",
                       "os_region_name": "RegionOne"},
            "oslo_concurrency": {"lock_path": "/var/lib/nova/tmp"},
            "oslo_messaging_notifications": {"driver": "noop"},
            "oslo_messaging_rabbit": {"amqp_durable_queues": "false", "amqp_auto_delete": "false",
                                      "heartbeat_in_pthread": "false"},
            "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
            "oslo_policy": {"enforce_new_defaults": "true", "enforce_scope": "true"},  # policy_file: only with a file
            "notifications": {"notify_on_state_change": "vm_and_task_state", "notification_format": "both"},
            "libvirt": {"virt_type": "qemu", "cpu_mode": "none", "live_migration_permit_auto_converge": "true",
                        "live_migration_permit_post_copy": "true", "live_migration_timeout_action": "force_complete",
                        "num_pcie_ports": 16, "cpu_power_management": "false"},
            "upgrade_levels": {"compute": "auto"},
            "vnc": {"enabled": "true", "novncproxy_host": "127.0.0.1", "novncproxy_port": PORTS["nova-novncproxy"],
                    "novncproxy_base_url": f"http://127.0.0.1:{PORTS['nova-novncproxy']}/vnc_lite.html",
                    "server_listen": "127.0.0.1", "server_proxyclient_address": "127.0.0.1"},
            "workarounds": {"disable_fallback_pcpu_query": "true", "skip_cpu_compare_on_dest": "true",
                            "enable_qemu_monitor_announce_self": "true",
                            "reserve_disk_resource_for_image_cache": "true"},
            "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"}}


def _httpd(name: str) -> str:
    modules = "\n".join(f"LoadModule {module}_module {MODULES}/mod_{module}.so"
                        for module in ("mpm_event", "authz_core", "wsgi"))
    return HTTPD.format(name=name, port=PORTS[name], modules=modules, bin=f"{HOME}/bin", home=HOME)
