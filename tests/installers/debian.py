"""Debian: apt, debconf and dbconfig configure and start our programs by the scripts, units and init scripts of Debian's
own nova packages; then our packages take their place."""

from __future__ import annotations

from tests.installers import debian_packaging as packaging
from tests.installers.debian_packaging import APT, APT_S, BETWEEN, OURS, Mixed
from tests.installers.site import Site, rendered

THEIRS = ("nova-common", "nova-api", "nova-conductor", "nova-scheduler", "nova-compute", "nova-compute-qemu",
          "nova-consoleproxy")
#: The nova.conf of Debian's package is Nova's sample: debconf fills lines that are there, behind a # or not.
ASKED_FOR = {
    "DEFAULT": ("transport_url", "my_ip"), "api_database": ("connection",), "database": ("connection",),
    "cinder": ("os_region_name",),
    "keystone_authtoken": ("www_authenticate_uri", "auth_uri", "auth_url", "region_name", "username", "project_name",
                           "password"),
    "neutron": ("endpoint_override", "auth_url", "project_name", "username", "password",
                "metadata_proxy_shared_secret"),
    "placement": ("auth_url", "project_name", "username", "password", "region_name"),
}
PASSWORD = {"auth_type": "password", "user_domain_name": "Default", "project_domain_name": "Default"}
BESIDE = {
    "DEFAULT": {"state_path": "/var/lib/nova", "log_dir": "/var/log/nova", "enabled_apis": "osapi_compute,metadata"},
    "api": {"auth_strategy": "keystone"},
    "keystone_authtoken": PASSWORD,
    "neutron": {**PASSWORD, "region_name": "RegionOne", "service_metadata_proxy": "true"},
    "placement": PASSWORD,
    "oslo_concurrency": {"lock_path": "/var/lock/nova"},
    "vnc": {"enabled": "true", "server_listen": "127.0.0.1",
            "novncproxy_base_url": "http://127.0.0.1:6080/vnc_auto.html"},
    "wsgi": {"api_paste_config": "/etc/nova/api-paste.ini"},
}
UWSGI = """[uwsgi]
master = true
processes = 2
lazy-apps = true
enable-threads = true
thunder-lock = true
die-on-term = true
uid = nova
gid = nova
wsgi-file = /usr/bin/{program}
virtualenv = /usr/lib/nova
logto = /var/log/nova/{name}.log
"""
LOGGING = "[loggers]\nkeys = root\n[handlers]\nkeys = stderr\n[formatters]\nkeys = plain\n" \
          "[logger_root]\nlevel = INFO\nhandlers = stderr\n[handler_stderr]\nclass = StreamHandler\nargs = ()\n" \
          "formatter = plain\n[formatter_plain]\nformat = %(message)s\n"
CONSOLES = "NOVA_CONSOLE_PROXY_TYPE=novnc\n"
HYPERVISOR = "Depends: nova-common, nova-compute\nProvides: nova-compute-hypervisor\n"
VIRT_TYPE = {"DEFAULT": {"compute_driver": "libvirt.LibvirtDriver"}, "libvirt": {"virt_type": "qemu"}}
DAEMONS = ("nova-api", "nova-api-metadata", "nova-conductor", "nova-scheduler", "nova-compute", "nova-novncproxy")
DB_ADMIN, DB_ADMIN_PASSWORD = "dbconfig", "of-the-admin"


def installed(site: Site) -> str:
    """What debconf asks is answered before; one apt then makes databases, tables and cells, and starts all."""
    packaging.fetch(site, THEIRS)
    packaging.build(site)
    for mixed in mixtures():
        packaging.mix(site, mixed)
    packaging.make(site, "nova-compute-qemu", "nova-compute-qemu", HYPERVISOR,
                   {"etc/nova/nova-compute.conf": rendered(VIRT_TYPE)})
    answered(site)
    return site.machine.ok(f"{APT} install {BETWEEN}/*.deb", APT_S)


def mixtures() -> tuple[Mixed, ...]:
    share = "usr/share/nova-common"
    return (
        Mixed("nova-common", "nova-common", {f"{share}/nova.conf": template(), f"{share}/logging.conf": LOGGING}),
        Mixed("nova-api", "nova-api", {
            "etc/nova/nova-api-uwsgi.ini": UWSGI.format(program="nova-api-wsgi", name="nova-api"),
            "etc/nova/nova-api-metadata-uwsgi.ini": UWSGI.format(program="nova-metadata-wsgi",
                                                                 name="nova-api-metadata"),
        }, ("nova-metadata-wsgi",)),
        Mixed("nova-conductor", "nova-conductor"),
        Mixed("nova-scheduler", "nova-scheduler"),
        Mixed("nova-compute", "nova-compute", depends="nova-compute-kvm | nova-compute-hypervisor, "),
        Mixed("nova-novncproxy", "nova-consoleproxy", {"usr/share/nova-consoleproxy/default": CONSOLES}),
    )


def template() -> str:
    """Lines for all that debconf may set, and what is set beside it."""
    text = ""
    for section in {**ASKED_FOR, **BESIDE}:
        text += rendered({section: BESIDE.get(section, {})})
        text += "".join(f"#{name} = <None>\n" for name in ASKED_FOR.get(section, ()))
    return text


def answered(site: Site) -> None:
    site.sql(f"CREATE USER IF NOT EXISTS '{DB_ADMIN}'@'%' IDENTIFIED BY '{DB_ADMIN_PASSWORD}';"
             f"GRANT ALL PRIVILEGES ON *.* TO '{DB_ADMIN}'@'%' WITH GRANT OPTION;")
    host, port = site.database_address.split(":")
    # for mysql without a port, by which the database of cell0 is made
    site.write("/root/.my.cnf", f"[client]\nhost = {host}\nport = {port}\n", mode="0600")
    questions = {**asked(site), **databases("nova-common", "nova", site), **databases("nova-api", "novaapi", site)}
    lines = "".join(f"{package} {question} {kind} {value}\n" for (package, question, kind), value in questions.items())
    site.write("/root/answers", lines, mode="0600")
    site.machine.ok("debconf-set-selections /root/answers")


def asked(site: Site) -> dict[tuple[str, str, str], str]:
    """Of nova-common's own templates, and the console's kind."""
    words = {
        "rabbit-host": f"{site.broker_address}/nova", "rabbit-userid": "nova", "ksat-public-url": site.url("keystone"),
        "ksat-region": "RegionOne", "ksat-service-username": "nova", "ksat-service-project-name": "service",
        "ksat-admin-username": "admin", "ksat-admin-project-name": "admin", "neutron_url": site.url("neutron"),
        "neutron_admin_tenant_name": "service", "neutron_admin_username": "neutron", "my-ip": "127.0.0.1",
        "placement_admin_tenant_name": "service", "placement_admin_username": "nova",
        "placement_os_region_name": "RegionOne", "cinder_os_region_name": "RegionOne",
    }
    secrets = {
        "rabbit-password": site.password("rabbit-nova"), "ksat-service-password": site.password("nova"),
        "ksat-admin-password": site.password("admin"), "neutron_admin_password": "of-neutron",
        "metadata_secret": "of-the-proxy", "placement_admin_password": site.password("nova"),
    }
    yes = ("configure_rabbit", "configure_ksat", "configure_neutron", "configure_placement", "configure_db")
    return {**{("nova-common", f"nova/{name}", "string"): value for name, value in words.items()},
            **{("nova-common", f"nova/{name}", "password"): value for name, value in secrets.items()},
            **{("nova-common", f"nova/{name}", "boolean"): "true" for name in yes},
            ("nova-common", "nova/ksat-create-service-user", "boolean"): "false",
            ("nova-api", "novaapi/configure_db", "boolean"): "true",
            ("nova-novncproxy", "nova-consoleproxy/daemon_type", "select"): "novnc"}


def databases(package: str, name: str, site: Site) -> dict[tuple[str, str, str], str]:
    """What dbconfig asks for a database of that name."""
    host, port = site.database_address.split(":")
    return {
        (package, f"{package}/dbconfig-install", "boolean"): "true",
        (package, f"{package}/database-type", "select"): "mysql",
        (package, f"{package}/mysql/method", "select"): "TCP/IP",
        (package, f"{package}/remote/host", "select"): host,
        (package, f"{package}/remote/newhost", "string"): host,
        (package, f"{package}/remote/port", "string"): port,
        (package, f"{package}/mysql/admin-user", "string"): DB_ADMIN,
        (package, f"{package}/mysql/admin-pass", "password"): DB_ADMIN_PASSWORD,
        (package, f"{package}/mysql/app-pass", "password"): "of-the-database",
        (package, f"{package}/password-confirm", "password"): "of-the-database",
        (package, f"{package}/app-password-confirm", "password"): "of-the-database",
        (package, f"{package}/db/app-user", "string"): f"{name}@{host}",
        (package, f"{package}/db/dbname", "string"): name,
    }
