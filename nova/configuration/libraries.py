"""The options that libraries read from nova.conf, from the libraries' own lists."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from oslo_config import cfg

from nova.conf._urls import BrokerUrl, WebUrl

Declared = Iterator[tuple[str, cfg.Opt]]

#: Option lists of libraries -> the sections with their options.
LISTS = {
    "oslo.messaging": ("DEFAULT", "oslo_messaging_notifications", "oslo_messaging_rabbit", "oslo_messaging_kafka"),
    "oslo.middleware": ("oslo_middleware", "cors", "healthcheck", "oslo_middleware_tracing"),
    "oslo.policy": ("oslo_policy",), "oslo.concurrency": ("oslo_concurrency",),
    "oslo.config": ("DEFAULT", "sample_remote_file_source"),
    "keystonemiddleware.auth_token": ("keystone_authtoken",),
    "keystonemiddleware.audit": ("audit_middleware_notifications",),  # a filter that operators may add
    "os_vif": ("os_vif_linux_bridge", "os_vif_noop", "os_vif_ovs")}
PRIVSEP = ("vif_plug_ovs_privileged", "vif_plug_linux_bridge_privileged", "nova_sys_admin", "privsep_entrypoint")
#: Sections with credentials that keystoneauth reads.
WITH_CREDENTIALS = ("keystone_authtoken", "service_user", "glance", "cinder", "barbican", "neutron", "oslo_limit",
                    "vendordata_dynamic_auth", "keystone")
AUTH_TYPES = ("auth_type", "auth_plugin")
#: Credential options in which a password may contain a ``$``.
_TEXTS = ("username", "password", "user_password", "admin_user", "admin_password", "token", "admin_token",
          "application_credential_secret", "application_credential_id", "project_name", "memcache_secret_key")
#: Options known without importing their library: URLs, which libraries declare as plain text, and credentials.
_USUAL = (("DEFAULT", cfg.Opt("transport_url", type=BrokerUrl())),
         ("oslo_messaging_notifications", cfg.Opt("transport_url", type=BrokerUrl())),
         ("keystone_authtoken", cfg.Opt("www_authenticate_uri", type=WebUrl(), deprecated_name="auth_uri")),
         *((section, cfg.Opt("auth_url", type=WebUrl())) for section in WITH_CREDENTIALS),
         *((section, cfg.StrOpt(name)) for section in WITH_CREDENTIALS for name in _TEXTS))


def usual() -> Declared:
    """Yield the options that operators most often set, and set wrong, without importing a library."""
    yield from _USUAL


def declared(sections: Collection[str]) -> Declared:
    """Yield (section, option) of the libraries with options in one of the sections. Imports these libraries."""
    for entry in entry_points(group="oslo.config.opts"):
        if not set(LISTS.get(entry.name, ())).isdisjoint(sections):
            for group, options in entry.load()():
                name = getattr(group, "name", group) or "DEFAULT"
                yield from ((name, option) for option in options)
        if entry.name == "oslo.privsep" and not set(PRIVSEP).isdisjoint(sections):
            yield from ((section, option) for _group, options in entry.load()() for section in PRIVSEP
                        for option in options)


def in_use() -> set[str]:
    """Return the sections of libraries that this process has imported: their lists cost nothing."""
    return {section for entry in entry_points(group="oslo.config.opts") if _is_loaded(entry)
            for section in LISTS.get(entry.name, ())}


def _is_loaded(entry: EntryPoint) -> bool:
    return entry.module in sys.modules


def credentials(auth_types: Mapping[str, Iterable[str]]) -> Declared:
    """Yield the options that keystoneauth reads in each section for its ``auth_type`` (or several). Imports
    keystoneauth."""
    from keystoneauth1 import exceptions, loading

    for section, names in auth_types.items():
        read = [*loading.get_auth_common_conf_options(), *loading.get_session_conf_options()]
        for auth_type in sorted(set(names)):
            with contextlib.suppress(exceptions.NoMatchingPlugin):  # reported at login
                read += loading.get_auth_plugin_conf_options(auth_type)
        yield from ((section, option) for option in read)
