"""Table of the secrets that each service reads, and the users that services run as."""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT = "DEFAULT"
CONDUCTOR, IMAGE_PROXY = "nova-conductor", "nova-imageproxy"
#: User of the services on a compute host, which share its secret. nova-api serves the metadata service and the APIs.
HOST_USER = "nova"
HOST_DAEMONS = ("nova-compute", "nova-network", "nova-api", "nova-api-metadata")
METADATA = ("nova-api", "nova-api-metadata")
APIS = ("nova-api", "nova-api-os-compute", "nova-api-ec2", "nova-placement-api")
OBJECTSTORE = "nova-objectstore"
CONSOLE_PROXIES = ("nova-novncproxy", "nova-spicehtml5proxy", "nova-serialproxy", "nova-xvpvncproxy")
#: Services that use the control plane's vhost.
CONTROL = (CONDUCTOR, *APIS, "nova-scheduler", "nova-consoleauth", "nova-cert", OBJECTSTORE, *CONSOLE_PROXIES)
DAEMONS = tuple(dict.fromkeys((*CONTROL, IMAGE_PROXY, *HOST_DAEMONS)))

#: Secret options of Keystone credentials, for all plugins (``auth_type``).
CREDENTIALS = ("password", "user_password", "admin_password", "token", "admin_token", "application_credential_secret",
               "client_secret", "access_token", "refresh_token", "passcode")
#: Section -> services that log in with its credentials. Clients of a service use the last two if the service's own
#: section has no credentials.
_LOG_IN: Mapping[str, tuple[str, ...]] = {
    "glance": (CONDUCTOR, IMAGE_PROXY, OBJECTSTORE), "cinder": (CONDUCTOR,), "neutron": (CONDUCTOR,),
    "barbican": (CONDUCTOR,), "oslo_limit": (CONDUCTOR,), "vendordata_dynamic_auth": METADATA,
    "keystone": (CONDUCTOR, "nova-api-ec2", OBJECTSTORE),
    "service_user": (CONDUCTOR, IMAGE_PROXY, OBJECTSTORE, *APIS),
    "keystone_authtoken": (CONDUCTOR, IMAGE_PROXY, OBJECTSTORE, *APIS)}
#: (section, option) -> services that read it.
READERS: Mapping[tuple[str, str], tuple[str, ...]] = {
    (DEFAULT, "transport_url"): CONTROL,
    (DEFAULT, "hosts_transport_url"): (CONDUCTOR, *HOST_DAEMONS),
    (DEFAULT, "ldap_dns_password"): (CONDUCTOR,),
    ("oslo_messaging_notifications", "transport_url"): (CONDUCTOR,),
    ("api_database", "connection"): (CONDUCTOR,),
    ("database", "connection"): (CONDUCTOR,),
    ("conductor", "host_secret_key"): (CONDUCTOR,),
    ("image_proxy", "key"): (CONDUCTOR, IMAGE_PROXY),
    ("key_manager", "fixed_key"): (CONDUCTOR,),
    ("neutron", "metadata_proxy_shared_secret"): METADATA,
    ("keystone_authtoken", "memcache_secret_key"): APIS,
    **{(section, name): daemons for section, daemons in _LOG_IN.items() for name in CREDENTIALS}}


def user_of(daemon: str) -> str:
    """Return the user that runs the service and owns its file."""
    return HOST_USER if daemon in HOST_DAEMONS else daemon


def secrets_of(daemon: str) -> tuple[tuple[str, str], ...]:
    """Return (section, option) of the secrets that the service reads."""
    return tuple(name for name, daemons in READERS.items() if daemon in daemons)
