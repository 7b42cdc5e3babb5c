"""Doctor check of Neutron."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nova import errors
from nova.conf._options import Options
from nova.manage.doctor.finding import BAD, OK, WARN, Finding

if TYPE_CHECKING:
    from nova.clients.session import Credentials

WANTED = {"binding-extended": "live migrations bind their ports on both hosts",
          "quota_details": "a request for more ports than the project may have is refused immediately"}


def neutron(options: Options) -> Finding:
    """Check that Neutron accepts nova's credentials, and report missing extensions and roles."""
    from nova.clients import neutron as client
    from nova.clients import session
    from nova.conf.network import neutron_in_use

    if not neutron_in_use(options):
        return Finding(OK, "Neutron is not in use: networks are nova-network's")
    try:
        credentials = session.load(options, "neutron")
        found = client.of_groups(options.neutron, credentials).extensions()
        roles = _roles(credentials)
    except (errors.service.Credentials, errors.config.Credentials) as error:
        return Finding(BAD, error.message, "correct [neutron]auth_url, username, password and project_name")
    except errors.NovaError as error:
        return Finding(BAD, error.message,
                       "check that Neutron runs, and its endpoint in the catalog or [neutron]endpoint_override")
    lacking = [f"{alias} ({use})" for alias, use in WANTED.items() if alias not in found]
    if lacking:
        return Finding(WARN, f"Neutron answers, but lacks {', '.join(lacking)}", "enable these extensions")
    if roles is not None and "service" not in roles:
        return Finding(WARN, "Neutron accepts the credentials of [neutron], but their user lacks the role service, "
                       "which it requires to bind a port for a live migration, or to set a port's device",
                       "openstack role add --user USER --project service service")
    return Finding(OK, f"Neutron accepts the credentials of [neutron]; it has {len(found)} extensions")


def _roles(credentials: Credentials) -> set[str] | None:
    """Return the roles of nova's user; None if the plugin does not report them."""
    access = getattr(credentials.auth, "get_access", None)
    return set(access(credentials.session).role_names) if access is not None else None


__all__ = ["neutron"]
