"""Services beside nova that a conductor's nova.conf names: the network service, the receiver of notifications."""

from __future__ import annotations

import logging

from nova import errors
from nova.conf.base import Options
from nova.model.base import Library

LOG = logging.getLogger(__name__)

NOTIFICATIONS = "oslo_messaging_notifications"


def networking(options: Options, deps: Library) -> Library:
    """Make the network back end: Neutron's or nova-network's. config.Credentials, config.Missing: Neutron's options
    cannot be used."""
    from nova.clients import neutron, session
    from nova.conductor.actions.interfaces import detach_at_once
    from nova.conductor.neutron import proxies as neutron_proxies
    from nova.conductor.neutron.back_end import NeutronBackEnd
    from nova.conductor.nova_network.back_end import NovaNetwork
    from nova.conf.network import neutron_in_use

    if not neutron_in_use(options):
        return NovaNetwork(deps)
    credentials = session.load(options, "neutron")
    if credentials.auth is None and not options.neutron.endpoint_override:
        raise errors.config.Missing(option="[neutron]auth_type", cure="networks are Neutron's ([DEFAULT]use_neutron). "
                                    "Set [neutron]auth_type, auth_url, username, password and project_name")
    client = neutron.of_groups(options.neutron, credentials)
    back_end = NeutronBackEnd(deps, client, detach_at_once(deps), options.neutron.ovs_bridge)

    def changed(server_uuid: str) -> None:
        back_end.events.late.add(back_end.healer.refresh([server_uuid]))
    of_all = options.api.neutron_default_tenant_id if options.api.use_neutron_default_nets else None
    back_end.networks = neutron_proxies.NetworksByNeutron(client, of_all)
    back_end.floating = neutron_proxies.FloatingByNeutron(deps, client, options.neutron.default_floating_pool, changed)
    back_end.groups = neutron_proxies.GroupsByNeutron(deps, client, changed)
    return back_end


def check_networking(back_end: Library) -> None:
    """Log why Neutron cannot be used yet. The conductor starts all the same: deployment tools make Neutron's user after
    nova, and what needs no network is served."""
    if back_end.name != "neutron":
        return
    try:
        back_end.client.extensions()
    except (errors.service.Credentials, errors.config.Credentials) as error:
        LOG.error("the network service does not let nova in, so no server gets a port: correct [neutron]auth_url, "
                  "username, password and project_name (%s)", error.message)
    except errors.service.ResourceNotFound:
        LOG.error("there is no Neutron at [neutron]endpoint_override (or the catalog's address), so no server gets a "
                  "port: correct it")
    except errors.NovaError as error:
        LOG.warning("the network service is not there yet: %s", error.message)


def notifier(options: Options) -> Library:
    """Make the sender of notifications. A cloud of one process has no broker to send them to: oslo.messaging, which is
    slow to import, is left out where nova.conf does not name it."""
    from nova.notifications.notifier import Silent
    from nova.rpc.buses import is_in_process

    if is_in_process(options) and NOTIFICATIONS not in options.list_all_sections():
        return Silent()
    from nova.notifications import oslo

    return oslo.make(options, options.host)
