"""Peer services configured in a conductor's nova.conf: the network service, the receiver of notifications."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from nova import errors
from nova.conf._options import Options, oslo_conf

if TYPE_CHECKING:
    from nova.conductor.engine.deps import Deps
    from nova.conductor.networking.back_end import NetworkBackEnd
    from nova.conductor.neutron.back_end import NeutronBackEnd
    from nova.notifications.notifier import DisabledNotifier

LOG = logging.getLogger(__name__)

NOTIFICATIONS = "oslo_messaging_notifications"


def networking(options: Options, deps: Deps) -> NetworkBackEnd:
    """Create the network back end, Neutron's or nova-network's. Raises config.Credentials, config.Missing if Neutron's
    options cannot be used."""
    from nova.clients import neutron, session
    from nova.conductor.actions.interfaces import detach_without_waiting
    from nova.conductor.neutron import proxies as neutron_proxies
    from nova.conductor.neutron.back_end import NeutronBackEnd
    from nova.conductor.nova_network.back_end import NovaNetwork
    from nova.conf.network import neutron_in_use

    if not neutron_in_use(options):
        return cast("NetworkBackEnd", NovaNetwork(deps))  # some calls take rows, others values of servers
    credentials = session.load(options, "neutron")
    if credentials.auth is None and not options.neutron.endpoint_override:
        raise errors.config.Missing(option="[neutron]auth_type", cure="networks are Neutron's ([DEFAULT]use_neutron). "
                                    "Set [neutron]auth_type, auth_url, username, password and project_name")
    client = neutron.of_groups(options.neutron, credentials)
    back_end = NeutronBackEnd(deps, client, detach_without_waiting(deps), options.neutron.ovs_bridge,
                              heal_s=float(options.heal_instance_info_cache_interval))

    def changed(server_uuid: str) -> None:
        back_end.events.late.add(back_end.healer.refresh([server_uuid]))
    of_all = options.api.neutron_default_tenant_id if options.api.use_neutron_default_nets else None
    back_end.networks = neutron_proxies.NetworksByNeutron(client, of_all)
    back_end.floating = neutron_proxies.FloatingByNeutron(deps, client, options.neutron.default_floating_pool, changed)
    back_end.groups = neutron_proxies.GroupsByNeutron(deps, client, changed)
    return cast("NetworkBackEnd", back_end)


def check_networking(back_end: NetworkBackEnd) -> None:
    """Log why Neutron cannot be used yet. The conductor starts nevertheless: deployment tools create Neutron's user
    after they start nova, and requests without networks are served."""
    if back_end.name != "neutron":
        return
    try:
        cast("NeutronBackEnd", back_end).client.extensions()
    except (errors.service.Credentials, errors.config.Credentials) as error:
        LOG.error("the network service rejects nova's credentials, so servers get no ports: correct [neutron]auth_url, "
                  "username, password and project_name (%s)", error.message)
    except errors.service.ResourceNotFound:
        LOG.error("Neutron does not answer at [neutron]endpoint_override (or the catalog's address), so servers get no "
                  "ports: correct the address")
    except errors.NovaError as error:
        LOG.warning("the network service is not available yet: %s", error.message)


def notifier(options: Options) -> DisabledNotifier:
    """Create the sender of notifications. A single-process cloud has no broker for them: oslo.messaging, which is slow
    to import, is not loaded unless nova.conf configures it."""
    from nova.notifications.notifier import DisabledNotifier
    from nova.rpc.buses import is_in_process

    if is_in_process(options) and NOTIFICATIONS not in oslo_conf(options).list_all_sections():
        return DisabledNotifier()
    from nova.notifications import oslo

    return oslo.make(options, options.host)
