"""What openstack-ansible's role os_nova writes, with its names of options; one machine has all of its groups."""

from __future__ import annotations

from collections.abc import Mapping

from tests.installers.site import Options, Site, rendered

USER, HOME, HOST, REGION = "nova", "/var/lib/nova", "127.0.0.1", "RegionOne"
UWSGI = "/openstack/venvs/uwsgi/bin/uwsgi"
APIS = {"nova-api-os-compute": ("nova.wsgi.osapi_compute:application", 8774),
        "nova-api-metadata": ("nova.wsgi.metadata:application", 8775)}
#: By ``start_order``.
SERVICES = ("nova-conductor", "nova-scheduler", "nova-api-os-compute", "nova-api-metadata", "nova-novncproxy",
            "nova-compute")
#: As create_cell and update_cell are given them: nova-manage fills them from nova.conf.
CELL_DATABASE = "{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}"
#: Without the slash before the vhost, which quorum queues go with.
CELL_TRANSPORT = "{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}"
CELL0_DATABASE = "{scheme}://{username}:{password}@{hostname}:{port}/nova_cell0?{query}"

#: An ini file that its own parser has read and written, with what the role sets.
MERGED = """
import configparser, sys
path, *sets = sys.argv[1:]
found = configparser.ConfigParser(interpolation=None, strict=False)
found.optionxform = str
found.read(path + ".original")
for section, name, value in (one.split("|") for one in sets):
    found[section][name] = value
with open(path, "w") as file:
    found.write(file)
"""


def folders(venv: str) -> str:
    """The role's user, its folders; its configuration lies in the virtual environment, and /etc/nova is a link."""
    return f"""
        groupadd -f -r {USER}; id {USER} > /dev/null 2>&1 || useradd -r -g {USER} -s /bin/false -d {HOME} {USER}
        install -d -o {USER} -g {USER} -m 0755 {venv}/etc/nova {HOME} {HOME}/cache/api {HOME}/instances
        install -d -o root -g {USER} -m 0750 {venv}/etc/nova/provider_config
        install -d -o root -g root -m 0750 /etc/sudoers.d
        install -d -o {USER} -g {USER} -m 0700 {HOME}/.ssh
        test -h /etc/nova || rm -rf /etc/nova; ln -sfn {venv}/etc/nova /etc/nova
        usermod -a -G libvirt {USER}
        test -e {HOME}/.ssh/id_rsa || setpriv --reuid={USER} --regid={USER} --init-groups \\
            ssh-keygen -q -t rsa -N '' -f {HOME}/.ssh/id_rsa
        echo 'D /run/lock/nova 2755 {USER} {USER}' > /etc/tmpfiles.d/openstack-nova.conf
        systemd-tmpfiles --create /etc/tmpfiles.d/openstack-nova.conf"""


def core_files(venv: str) -> str:
    """The two files that the role takes from nova: kept as they were, merged once, and again."""
    etc, exec_dirs = f"{venv}/etc/nova", f"{venv}/bin,/sbin,/usr/sbin,/bin,/usr/bin,/usr/local/bin,/usr/local/sbin"
    return f"""
        chown -R root:root {etc}/rootwrap.d
        for name in api-paste.ini rootwrap.conf; do
            test -e {etc}/$name.original || cp {etc}/$name {etc}/$name.original; done
        python3 /opt/merged.py {etc}/api-paste.ini
        python3 /opt/merged.py {etc}/rootwrap.conf 'DEFAULT|exec_dirs|{exec_dirs}' \\
            'DEFAULT|filters_path|/etc/nova/rootwrap.d,/usr/share/nova/rootwrap'
        chown root:{USER} {etc}/api-paste.ini {etc}/rootwrap.conf; chmod 0640 {etc}/api-paste.ini {etc}/rootwrap.conf
        rm -f /etc/nova/nova-compute.conf"""


def sudoers(venv: str) -> str:
    return (f'Defaults:{USER} !requiretty\n'
            f'Defaults:{USER} secure_path="{venv}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"\n\n'
            f"{USER} ALL = (root) NOPASSWD: {venv}/bin/nova-rootwrap\n"
            f"{USER} ALL = (root) NOPASSWD: {venv}/bin/privsep-helper\n")


def nova_conf(site: Site) -> Options:
    """Quorum queues, streams and a queue manager are the role's defaults."""
    transport = f"{site.broker_url}?ssl=0"
    pool = {"max_overflow": 50, "max_pool_size": 5, "pool_timeout": 30, "connection_recycle_time": 600}
    memcached = f"{HOST}:11211"
    return {
        "DEFAULT": {
            "debug": False, "use_journal": True, "state_path": HOME, "service_down_time": 120,
            "cpu_allocation_ratio": 2.0, "disk_allocation_ratio": 1.0, "ram_allocation_ratio": 1.0,
            "reserved_host_disk_mb": 2048, "reserved_host_memory_mb": 0, "compute_driver": "libvirt.LibvirtDriver",
            "instances_path": f"{HOME}/instances", "allow_resize_to_same_host": True,
            "enabled_apis": "osapi_compute,metadata", "transport_url": transport, "my_ip": HOST,
            "default_ephemeral_format": "ext4", "instance_usage_audit": True, "instance_usage_audit_period": "hour"},
        "oslo_messaging_notifications": {"topics": "notifications", "driver": "messagingv2",
                                         "transport_url": transport},
        "oslo_messaging_rabbit": {
            "heartbeat_in_pthread": True, "rabbit_quorum_queue": True, "rabbit_transient_quorum_queue": True,
            "rabbit_qos_prefetch_count": 10, "use_queue_manager": True, "hostname": "fresh-nova",
            "rabbit_stream_fanout": True, "rabbit_quorum_delivery_limit": 0, "rabbit_quorum_max_memory_bytes": 0},
        "image_cache": {"manager_interval": 0},
        "cache": {"enabled": True, "backend": "oslo_cache.memcache_pool", "memcache_servers": memcached},
        "cinder": {"catalog_info": "block-storage:cinder:internalURL", "os_region_name": REGION,
                   "auth_section": "keystone_authtoken"},
        "spice": {"agent_enabled": True, "enabled": False},
        "vnc": {"enabled": True, "novncproxy_base_url": f"http://{HOST}:6080/vnc_lite.html", "novncproxy_host": HOST,
                "novncproxy_port": 6080, "server_listen": HOST, "server_proxyclient_address": HOST},
        "serial_console": {"enabled": False},
        "glance": {"region_name": REGION, "insecure": False},
        "neutron": {**credentials(site), "region_name": REGION, "default_floating_pool": "public", "insecure": False,
                    "metadata_proxy_shared_secret": "of-neutron", "service_metadata_proxy": True},
        "notifications": {"notify_on_state_change": "vm_and_task_state", "notification_format": "unversioned"},
        "placement": {**credentials(site), "region_name": REGION, "insecure": False},
        "conductor": {"workers": 1},
        "service_user": {**credentials(site), "send_service_user_token": True, "region_name": REGION,
                         "insecure": False},
        "keystone_authtoken": {
            **credentials(site), "www_authenticate_uri": site.url("keystone"), "region_name": REGION,
            "service_token_roles_required": True, "service_token_roles": "service", "service_type": "compute",
            "insecure": False, "memcached_servers": memcached, "token_cache_time": 300,
            "memcache_security_strategy": "ENCRYPT", "memcache_secret_key": "of-memcached"},
        "database": {"connection": database(site, "nova"), **pool},
        "api_database": {"connection": database(site, "nova_api"), **pool},
        "oslo_concurrency": {"lock_path": "/run/lock/nova"},
        "libvirt": {"inject_partition": -2, "inject_password": False, "inject_key": False, "virt_type": "qemu",
                    "live_migration_with_native_tls": True, "live_migration_scheme": "tls",
                    "live_migration_inbound_addr": HOST, "hw_disk_discard": "ignore",
                    "disk_cachemodes": "network=writeback"},
        "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"},
        "api": {"vendordata_jsonfile_path": "/etc/nova/vendor_data.json", "dhcp_domain": "example.org"},
        "scheduler": {"workers": 1, "max_attempts": 5, "discover_hosts_in_cells_interval": -1},
        "filter_scheduler": {
            "max_io_ops_per_host": 10, "host_subset_size": 10, "track_instance_changes": True,
            "available_filters": "nova.scheduler.filters.all_filters",
            "enabled_filters": "ComputeFilter,AggregateNumInstancesFilter,AggregateIoOpsFilter,"
                               "ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,"
                               "ServerGroupAffinityFilter,NUMATopologyFilter"},
        "upgrade_levels": {"compute": "auto"},
    }


def database(site: Site, name: str) -> str:
    """Made where it is missing."""
    return site.database(name, "galera")


def credentials(site: Site) -> Mapping[str, object]:
    """One user of Keystone does for all."""
    return {"auth_type": "password", "auth_url": site.url("keystone", "/v3"), "username": USER,
            "password": site.password("nova"), "project_name": "service", "user_domain_id": "default",
            "project_domain_id": "default"}


def uwsgi(venv: str) -> Mapping[str, Options]:
    """/etc/uwsgi/NAME.ini, by name."""
    return {name: {"uwsgi": {
        "uid": USER, "gid": USER, "virtualenv": venv, "module": module, "http-socket": f"{HOST}:{port}",
        "master": "true", "enable-threads": "true", "processes": 1, "threads": 1, "exit-on-reload": "true",
        "die-on-term": "true", "lazy-apps": "true", "add-header": "Connection: close", "buffer-size": 65535,
        "thunder-lock": "true", "disable-logging": "true", "http-auto-chunked": "true", "http-raw-body": "true",
        "socket-timeout": 10, "need-app": "true", "log-x-forwarded-for": "true",
        "route-user-agent": "^osa-haproxy-healthcheck$ donotlog:"}} for name, (module, port) in APIS.items()}


def units(venv: str) -> Mapping[str, str]:
    """Of all services: simple ones, of the role's user, in one slice."""
    commands = {name: f"{UWSGI} --autoload --ini /etc/uwsgi/{name}.ini" for name in APIS}
    return {name: unit(name, commands.get(name, f"{venv}/bin/{name}")) for name in SERVICES}


def unit(name: str, command: str) -> str:
    after = ["libvirtd.service", "syslog.target", "network.target"] if name == "nova-compute" else ["network.target"]
    alias = {"Alias": "nova-api.service"} if name == "nova-api-os-compute" else {}
    return rendered({
        "Unit": {"Description": f"{name} service", "After": after},
        "Service": {"Type": "simple", "User": USER, "Group": USER, "ExecStart": command,
                    "ExecReload": "/bin/kill -HUP $MAINPID", "TimeoutSec": 120, "Restart": "on-failure",
                    "RestartSec": 2, "Slice": "nova.slice", "CPUAccounting": True, "MemoryAccounting": True,
                    "TasksAccounting": True, "PrivateTmp": False, "PrivateDevices": False, "PrivateNetwork": False,
                    "PrivateUsers": False},
        "Install": {"WantedBy": "multi-user.target", **alias}})
