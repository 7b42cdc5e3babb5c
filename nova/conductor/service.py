"""ConductorRPC: each call is answered by the one part that knows its noun."""

from __future__ import annotations

from nova.conductor.actions.create import Admission
from nova.conductor.actions.evacuate import Evacuations
from nova.conductor.actions.interfaces import Interfaces
from nova.conductor.actions.live_migrate import LiveMigrations
from nova.conductor.actions.power import Passwords
from nova.conductor.actions.rebuild import Rebuilds
from nova.conductor.actions.rescue import Rescues
from nova.conductor.actions.resize import Resizes
from nova.conductor.actions.shelve import Unshelving
from nova.conductor.actions.snapshot import ImagesOfServers
from nova.conductor.engine import announce
from nova.conductor.engine.assembled import Assembled, assemble
from nova.conductor.engine.deps import World
from nova.conductor.engine.quota import Quotas
from nova.conductor.hosts.registration import Daemons
from nova.conductor.nova_network.cloudpipe import Cloudpipes
from nova.conductor.queries.aggregates import Aggregates
from nova.conductor.queries.consoles import Consoles
from nova.conductor.queries.external_events import ExternalEvents
from nova.conductor.queries.flavors import Flavors, Keypairs
from nova.conductor.queries.hosts import Hosts
from nova.conductor.queries.images import Images
from nova.conductor.queries.migrations import Migrations
from nova.conductor.queries.networks import Floating, Networks, SecurityGroups
from nova.conductor.queries.server_groups import ServerGroups
from nova.conductor.queries.server_parts import ServerParts
from nova.conductor.queries.servers import Servers
from nova.conductor.queries.usage import Usage
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.interface import Interface


def announced(world: World, contract: type[Interface], whole: Assembled) -> Assembled:
    """With the calls that change something told of, where notifications are on."""
    for name in contract.methods:
        setattr(whole, name, announce.told(world, name, getattr(whole, name)))
    return whole


def conductor_service(world: World, daemons: Daemons) -> Assembled:
    """The service behind the topic ``conductor``."""
    servers, admission = Servers(world), Admission(world)
    actions = (admission, Passwords(world), Rescues(world), Unshelving(world), ImagesOfServers(world),
               Rebuilds(world, servers.get_server), Resizes(world), Evacuations(world), LiveMigrations(world),
               Interfaces(world))
    reads = (servers, Flavors(world), Keypairs(world), Quotas(world), Hosts(world), Aggregates(world), Networks(world),
             Floating(world), SecurityGroups(world), Images(world), Usage(world), ServerGroups(world),
             ServerParts(world), Migrations(world), Consoles(world))
    whole = assemble(ConductorRPC, *actions, *reads, daemons, ExternalEvents(world, servers.order_server),
                     Cloudpipes(world, admission.create_servers, servers.list_servers))
    return announced(world, ConductorRPC, whole)
