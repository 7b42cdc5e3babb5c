"""What devstack writes for nova, with its names of options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tests.installers.site import Options, Site, rendered

STACK, DEST = "stack", "/opt/stack"
DATA, VENV = f"{DEST}/data", f"{DEST}/data/venv"
BIN = f"{VENV}/bin"
CONF, CELL_CONF, CPU_CONF = "/etc/nova/nova.conf", "/etc/nova/nova_cell1.conf", "/etc/nova/nova-cpu.conf"
API_UWSGI, METADATA_UWSGI = "/etc/nova/nova-api-uwsgi.ini", "/etc/nova/nova-metadata-uwsgi.ini"
SOCKET = "/var/run/uwsgi/nova-api.socket"
HOST, REGION = "127.0.0.1", "RegionOne"



class Setup(NamedTuple):
    """``CELLSV2_SETUP``. ``database``: of the API's tier; ``vhost``: of cell1's broker; ``services``: what runs, in the
    order in which it is started, the APIs first."""

    database: str
    vhost: str
    services: tuple[str, ...]


SINGLE = Setup("nova_cell1", "nova", ("n-api", "n-sch", "n-api-meta", "n-novnc-cell1", "n-cond", "n-cpu"))
SUPER = Setup("nova_cell0", "nova_cell1",
              ("n-api", "n-sch", "n-api-meta", "n-novnc-cell1", "n-super-cond", "n-cond-cell1", "n-cpu"))

FOLDERS = f"""
    sudo install -d -o {STACK} /etc/nova
    install -d {DATA}/nova {DATA}/nova/instances {DATA}/nova/keys
    sudo install -d -m 0755 -o {STACK} /var/run/uwsgi
    echo 'd /var/run/uwsgi 0755 {STACK} root' | sudo tee /etc/tmpfiles.d/uwsgi.conf > /dev/null
    cp {DEST}/nova/etc/nova/api-paste.ini /etc/nova
    sudo usermod -a -G libvirt {STACK}
"""
ROOTWRAP = f"""
    sudo rm -rf /etc/nova/rootwrap.d
    sudo install -d -o root -g root -m 755 /etc/nova/rootwrap.d
    sudo install -o root -g root -m 644 {DEST}/nova/etc/nova/rootwrap.d/*.filters /etc/nova/rootwrap.d
    sudo install -o root -g root -m 644 {DEST}/nova/etc/nova/rootwrap.conf /etc/nova/rootwrap.conf
    sudo sed -e 's:^filters_path=.*$:filters_path=/etc/nova/rootwrap.d:' -i /etc/nova/rootwrap.conf
    echo '{STACK} ALL=(root) NOPASSWD: {BIN}/nova-rootwrap /etc/nova/rootwrap.conf *' > /tmp/rootwrap
    chmod 0440 /tmp/rootwrap; sudo chown root:root /tmp/rootwrap; sudo mv /tmp/rootwrap /etc/sudoers.d/nova-rootwrap
    echo 'Defaults:{STACK} secure_path={BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/usr/bin:/bin' \\
        | sudo tee /etc/sudoers.d/zz-secure-path > /dev/null
    sudo chmod 400 /etc/sudoers.d/zz-secure-path
"""
APACHE = f"""\
KeepAlive Off
SetEnv proxy-sendchunked 1
ProxyPass "/compute" "unix:{SOCKET}|uwsgi://uwsgi-uds-nova-api" retry=0 acquire=1
"""
#: With colors, as its own reader of logs in a terminal expects them.
FORMATS = {
    "logging_context_format_string": "%(color)s%(levelname)s %(name)s [\x1b[01;36m%(global_request_id)s %(request_id)s "
                                     "\x1b[00;36m%(project_name)s %(user_name)s%(color)s] \x1b[01;35m%(instance)s"
                                     "%(color)s%(message)s\x1b[00m",
    "logging_default_format_string": "%(color)s%(levelname)s %(name)s [-%(color)s] \x1b[01;35m%(instance)s%(color)s"
                                     "%(message)s\x1b[00m",
    "logging_debug_format_suffix": "from (pid=%(process)d) %(funcName)s %(pathname)s:%(lineno)d",
    "logging_exception_prefix": "ERROR %(name)s \x1b[01;35m%(instance)s\x1b[00m",
    "logging_user_identity_format": "%(project_name)s %(user_name)s",
}


def inis(site: Site, setup: Setup) -> Mapping[str, Options]:
    """nova-cpu.conf is a copy of nova.conf, from which databases are taken, with cell1's broker."""
    conf = nova_conf(site, setup)
    cell = {"transport_url": site.broker(setup.vhost)}
    return {CONF: conf, CELL_CONF: cell_conf(site, setup),
            CPU_CONF: {**conf, "DEFAULT": {**conf["DEFAULT"], **cell}, "database": {}, "api_database": {}},
            API_UWSGI: {"uwsgi": {**UWSGI, "module": "nova.wsgi.osapi_compute:application", "socket": SOCKET,
                                  "chmod-socket": 666}},
            METADATA_UWSGI: {"uwsgi": {**UWSGI, "module": "nova.wsgi.metadata:application", "http": "0.0.0.0:8775",
                                       "http-chunked-input": "true", "http-auto-chunked": "true"}}}


def nova_conf(site: Site, setup: Setup) -> Options:
    """Of all daemons but those of the cell and nova-compute; with one conductor, [database] is cell1's."""
    return {
        "DEFAULT": {
            "state_path": f"{DATA}/nova", "instances_path": f"{DATA}/nova/instances", "debug": True,
            "allow_resize_to_same_host": True, "rootwrap_config": "/etc/nova/rootwrap.conf", "my_ip": HOST,
            "instance_name_template": "instance-%08x", "osapi_compute_listen": "0.0.0.0", "metadata_listen": "0.0.0.0",
            "shutdown_timeout": 0, "graceful_shutdown_timeout": 5, "report_interval": 120, "service_down_time": 720,
            "enabled_apis": "osapi_compute,metadata", "default_ephemeral_format": "ext4", "use_journal": True,
            "compute_driver": "libvirt.LibvirtDriver", "osapi_compute_workers": 1, "metadata_workers": 1,
            "instance_usage_audit": True, "instance_usage_audit_period": "hour", "pointer_model": "ps2mouse",
            "notify_on_state_change": "vm_and_task_state", "transport_url": site.broker_url, "log_color": True,
            **FORMATS},
        "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"},
        "api": {"response_validation": "error"},
        "database": {"connection": database(site, setup.database)},
        "api_database": {"connection": database(site, "nova_api")},
        "oslo_concurrency": {"lock_path": f"{DATA}/nova"},
        "oslo_policy": {"enforce_new_defaults": True},
        "oslo_messaging_notifications": {"driver": "messagingv2", "transport_url": site.broker_url},
        "oslo_messaging_rabbit": {"heartbeat_timeout_threshold": 60, "heartbeat_rate": 2},
        "notifications": {"notification_format": "both"},
        "scheduler": {"workers": 1},
        "conductor": {"workers": 1},
        "filter_scheduler": {"enabled_filters": "ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,"
                             "ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,SameHostFilter,"
                             "DifferentHostFilter", "track_instance_changes": False},
        "key_manager": {"backend": "nova.keymgr.conf_key_mgr.ConfKeyManager", "fixed_key": "30" * 32},
        "cache": {"enabled": True, "backend": "dogpile.cache.memcached", "memcache_servers": "localhost:11211"},
        "keystone_authtoken": {**credentials(site, "nova"), "interface": "public",
                               "memcached_servers": "localhost:11211", "www_authenticate_uri": site.url("keystone")},
        "service_user": {**credentials(site, "nova"), "send_service_user_token": True},
        "placement": {**credentials(site, "placement"), "region_name": REGION},
        "neutron": {**credentials(site, "neutron"), "region_name": REGION, "service_metadata_proxy": True,
                    "default_floating_pool": "public", "metadata_proxy_shared_secret": "of-neutron"},
        "cinder": {**credentials(site, "nova"), "os_region_name": REGION},
        "libvirt": {"virt_type": "qemu", "cpu_mode": "none", "inject_partition": -2, "images_type": "default",
                    "live_migration_uri": f"qemu+ssh://{STACK}@%s/system"},
        "vnc": {"enabled": True, "novncproxy_base_url": f"http://{HOST}:6080/vnc_lite.html", "server_listen": HOST,
                "server_proxyclient_address": HOST},
        "spice": {"enabled": False, "html5proxy_base_url": f"http://{HOST}:6081/spice_auto.html"},
        "upgrade_levels": {"compute": "auto"},
        "os_vif_ovs": {"ovsdb_connection": f"tcp:{HOST}:6640"},
    }


def cell_conf(site: Site, setup: Setup) -> Options:
    """Of one cell: its database and its broker alone, and what its proxies listen on."""
    return {"DEFAULT": {"debug": True, "transport_url": site.broker(setup.vhost), "use_journal": True,
                        "log_color": True, **FORMATS},
            "database": {"connection": database(site, "nova_cell1")},
            "conductor": {"workers": 1},
            "vnc": {"novncproxy_host": "0.0.0.0", "novncproxy_port": 6080}}


def database(site: Site, name: str) -> str:
    """Made where it is missing; all of devstack's services have one user there."""
    return site.database(name, "devstack")


def credentials(site: Site, user: str) -> Mapping[str, object]:
    """A service's user; nova's has the password of the Keystone that is there."""
    return {"auth_type": "password", "auth_url": site.url("keystone"), "username": user,
            "password": site.password("nova") if user == "nova" else f"of-{user}", "user_domain_name": "Default",
            "project_name": "service", "project_domain_name": "Default"}


UWSGI = {
    "master": "true", "die-on-term": "true", "exit-on-reload": "false", "worker-reload-mercy": 80,
    "enable-threads": "true", "plugins": "http,python3", "thunder-lock": "true", "hook-master-start":
    "unix_signal:15 gracefully_kill_them_all", "buffer-size": 65535, "add-header": "Connection: close",
    "lazy-apps": "true", "start-time": "%t", "processes": 1}
UWSGI_UNIT = {"Type": "notify", "Restart": "always", "NotifyAccess": "all", "RestartForceExitStatus": 100}


def units(setup: Setup) -> Mapping[str, str]:
    """By the name after ``devstack@``. nova-compute's has libvirt's group."""
    daemons = {"n-sch": f"nova-scheduler --config-file {CONF}", "n-cond": f"nova-conductor --config-file {CONF}",
               "n-super-cond": f"nova-conductor --config-file {CONF}",
               "n-cond-cell1": f"nova-conductor --config-file {CELL_CONF}",
               "n-novnc-cell1": f"nova-novncproxy --config-file {CELL_CONF} --web /usr/share/novnc"}
    apis = {"n-api": f"--procname-prefix nova-api --ini {API_UWSGI}",
            "n-api-meta": f"--procname-prefix nova-api-meta --ini {METADATA_UWSGI}"}
    known = {**{name: unit(name, f"{BIN}/{command}") for name, command in daemons.items()},
             **{name: unit(name, f"/usr/bin/uwsgi {words} --venv {VENV}", **UWSGI_UNIT)
                for name, words in apis.items()},
             "n-cpu": unit("n-cpu", f"{BIN}/nova-compute --config-file {CPU_CONF}", Group="libvirt")}
    return {name: known[name] for name in setup.services}


def unit(name: str, command: str, **more: object) -> str:
    path = f"{BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return rendered({
        "Unit": {"Description": f"Devstack devstack@{name}.service"},
        "Service": {"ExecStart": command, "ExecReload": "/bin/kill -HUP $MAINPID", "KillMode": "process",
                    "TimeoutStopSec": 300, "User": STACK, "Environment": f'"PATH={path}"',
                    "SyslogIdentifier": f"devstack@{name}.service", **more},
        "Install": {"WantedBy": "multi-user.target"}})
