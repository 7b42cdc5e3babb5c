"""The values and templates of openstack-helm's chart nova. It is in no registry: what it renders is data here."""

from __future__ import annotations

from tests.installers.pods import Pod
from tests.installers.site import Options, Site, rendered

CONFIG = "/srv/chart"
CELL0 = "nova_cell0"
KEYSTONE = {"auth_type": "password", "region_name": "RegionOne", "project_domain_name": "Default",
            "user_domain_name": "Default"}
#: Of conf.logging, written to /etc/nova/logging.conf.
LOGGING: Options = {
    "loggers": {"keys": "root, nova"}, "handlers": {"keys": "stdout, stderr, null"},
    "formatters": {"keys": "context, default"},
    "logger_root": {"level": "WARNING", "handlers": "null"},
    "logger_nova": {"handlers": "stdout", "level": "INFO", "qualname": "nova"},
    "handler_null": {"class": "logging.NullHandler", "formatter": "default", "args": "()"},
    "handler_stdout": {"class": "StreamHandler", "args": "(sys.stdout,)", "formatter": "context"},
    "handler_stderr": {"class": "StreamHandler", "args": "(sys.stderr,)", "formatter": "context"},
    "formatter_context": {"class": "oslo_log.formatters.ContextFormatter", "datefmt": "%Y-%m-%d %H:%M:%S"},
    "formatter_default": {"format": "%(message)s", "datefmt": "%Y-%m-%d %H:%M:%S"}}
UWSGI = {"add-header": "Connection: close", "buffer-size": 65535, "die-on-term": "true", "enable-threads": "true",
         "exit-on-reload": "false", "hook-master-start": "unix_signal:15 gracefully_kill_them_all", "lazy-apps": "true",
         "log-x-forwarded-for": "true", "master": "true", "processes": 1, "thunder-lock": "true",
         "worker-reload-mercy": 80}
#: The probe of conductors, schedulers and computes: a call of the method ping on the daemon's own topic and host.
PROBE = """
import socket, sys
from oslo_config import cfg
import oslo_messaging as messaging
conf = cfg.CONF
conf(["--config-file", sys.argv[1]], project="nova")
messaging.set_transport_defaults("nova")
target = messaging.Target(topic=sys.argv[2], server=socket.gethostname(), namespace="baseapi", version="1.1")
client = messaging.get_rpc_client(messaging.get_rpc_transport(conf), target, timeout=20, retry=2)
try:
    client.call({}, "ping", arg="probe")
except messaging.MessagingTimeout:
    sys.exit(1)
except messaging.RemoteError as error:
    sys.exit("does not support" not in str(error).lower() and "UnsupportedVersion" not in str(error))
"""


class Chart:
    """Values of an operator, and what is rendered of them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.urls = {name: site.database(name) for name in ("nova_api", "nova", CELL0)}
        password = {name: site.password(name) for name in ("nova", "glance")}
        self.credentials = {**KEYSTONE, "auth_url": site.url("keystone"), "username": "nova", "project_name": "service",
                            "password": password["nova"]}
        for path, text in self._files().items():
            site.write(f"{CONFIG}/{path}", text, mode="0444")
        for folder in ("nova.conf.d", "rootwrap.d"):
            site.machine.ok(f"mkdir -p {CONFIG}/{folder}")
        site.machine.ok(f"cp etc/nova/api-paste.ini etc/nova/rootwrap.conf {CONFIG}/ && "
                        f"cp etc/nova/rootwrap.d/compute.filters {CONFIG}/rootwrap.d/")

    def _files(self) -> dict[str, str]:
        databases = {"database": {"connection": self.urls["nova"], "max_retries": -1},
                     "api_database": {"connection": self.urls["nova_api"], "max_retries": -1},
                     "cell0_database": {"connection": self.urls[CELL0], "max_retries": -1}}
        options = self._options()
        return {
            "nova.conf": rendered({**options, **databases}), "nova-compute.conf": rendered(options),
            "logging.conf": rendered(LOGGING), "policy.yaml": "{}\n",
            "nova-api-uwsgi.ini": self._uwsgi("0.0.0.0:8774", "nova.wsgi.osapi_compute:application", "nova-api"),
            "nova-metadata-uwsgi.ini": self._uwsgi("0.0.0.0:8775", "nova.wsgi.metadata:application", "nova-metadata"),
            "health-probe.py": PROBE}

    def _options(self) -> Options:
        return {
            "DEFAULT": {
                "log_config_append": "/etc/nova/logging.conf", "default_ephemeral_format": "ext4",
                "ram_allocation_ratio": 1.0, "disk_allocation_ratio": 1.0, "cpu_allocation_ratio": 3.0,
                "state_path": "/var/lib/nova", "osapi_compute_listen": "0.0.0.0", "osapi_compute_listen_port": 8774,
                "osapi_compute_workers": 1, "metadata_workers": 1, "metadata_listen_port": 8775,
                "compute_driver": "libvirt.LibvirtDriver", "my_ip": "127.0.0.1", "instance_usage_audit": "true",
                "instance_usage_audit_period": "hour", "resume_guests_state_on_host_boot": "true",
                "transport_url": self.site.broker_url},
            "vnc": {"auth_schemes": "none", "novncproxy_base_url": "http://127.0.0.1:6080/vnc_auto.html",
                    "novncproxy_port": 6080},
            "conductor": {"workers": 1}, "oslo_policy": {"policy_file": "/etc/nova/policy.yaml"},
            "oslo_concurrency": {"lock_path": "/var/lib/nova/tmp"},
            "oslo_middleware": {"enable_proxy_headers_parsing": "true"},
            "oslo_messaging_notifications": {"driver": "messagingv2"},
            "oslo_messaging_rabbit": {"rabbit_ha_queues": "false", "rabbit_quorum_queues": "true",
                                      "rabbit_transient_quorum_queue": "false", "use_queue_manager": "false"},
            "scheduler": {"max_attempts": 10, "discover_hosts_in_cells_interval": -1, "workers": 1},
            "glance": {"num_retries": 3, "api_servers": self.site.url("glance")},
            "cinder": {"catalog_info": "volumev3::internalURL"},
            "neutron": {**self.credentials, "metadata_proxy_shared_secret": "of-the-proxy",
                        "service_metadata_proxy": "true"},
            "placement": self.credentials, "service_user": {**self.credentials, "send_service_user_token": "true"},
            "keystone_authtoken": {**self.credentials, "auth_version": "v3", "service_token_roles": "service",
                                   "service_token_roles_required": "true", "service_type": "compute",
                                   "memcached_servers": "127.0.0.1:11211"},
            "libvirt": {"connection_uri": "qemu+unix:///system?socket=/run/libvirt/libvirt-sock",
                        "images_type": "qcow2", "virt_type": "qemu", "cpu_mode": "none",
                        "disk_cachemodes": "network=writeback",
                        "hw_disk_discard": "unmap"},
            "upgrade_levels": {"compute": "auto"}, "cache": {"enabled": "true", "backend": "dogpile.cache.memcached",
                                                             "memcache_servers": "127.0.0.1:11211"},
            "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"}}

    def _uwsgi(self, address: str, module: str, name: str) -> str:
        return rendered({"uwsgi": {**UWSGI, "http-socket": address, "module": module,
                                   "procname-prefix-spaced": f"{name}:",
                                   "route-user-agent": "^kube-probe.* donotlog:"}})

    def mounted(self, config: str = "nova.conf") -> dict[str, str]:
        """A pod's /etc/nova."""
        names = ("logging.conf", "api-paste.ini", "policy.yaml", "rootwrap.conf", "rootwrap.d", "nova.conf.d",
                 "nova-api-uwsgi.ini", "nova-metadata-uwsgi.ini")
        return {"/etc/nova/nova.conf": f"{CONFIG}/{config}",
                **{f"/etc/nova/{name}": f"{CONFIG}/{name}" for name in names}}

    def pod(self, name: str, script: str) -> Pod:
        return Pod(name, script, self.mounted())

    def admin(self) -> dict[str, str]:
        """What is in the environment of jobs that ask the API."""
        return {"OS_AUTH_URL": f"{self.site.url('keystone')}/v3", "OS_USERNAME": "admin", "OS_PROJECT_NAME": "admin",
                "OS_PASSWORD": self.site.password("admin"), "OS_REGION_NAME": "RegionOne",
                "OS_IDENTITY_API_VERSION": "3",
                "OS_USER_DOMAIN_NAME": "Default", "OS_PROJECT_DOMAIN_NAME": "Default"}
