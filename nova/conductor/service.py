"""Services of the conductor's contracts, assembled from parts: one part for each kind of resource."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from nova.conductor.actions.create import CreateAdmission
from nova.conductor.actions.evacuate import Evacuations
from nova.conductor.actions.interfaces import InterfaceActions
from nova.conductor.actions.live_migrate import LiveMigrations
from nova.conductor.actions.power import Passwords
from nova.conductor.actions.rebuild import Rebuilds
from nova.conductor.actions.rescue import Rescues
from nova.conductor.actions.resize import Resizes
from nova.conductor.actions.shelve import Unshelving
from nova.conductor.actions.snapshot import ImagesOfServers
from nova.conductor.actions.volume.attachment_upkeep import AttachmentUpkeep
from nova.conductor.actions.volume.volume_requests import VolumeActions
from nova.conductor.assembled import Assembled, assemble
from nova.conductor.cells.fan_out import PerCell
from nova.conductor.cells.guest_answers import MergedGuestAnswers
from nova.conductor.cells.host_lists import MergedHostLists
from nova.conductor.cells.host_records import MergedHostRecords
from nova.conductor.cells.live_cells import LiveCells
from nova.conductor.cells.record_lists import MergedRecords
from nova.conductor.cells.routes import assemble_cells
from nova.conductor.cells.server_lists import MergedServerLists
from nova.conductor.engine import announce
from nova.conductor.engine.deps import Deps
from nova.conductor.hosts.control_daemons import PROXIES, SCHEDULERS, ControlDaemons, MetadataServices
from nova.conductor.hosts.enrolment import Enrolments
from nova.conductor.hosts.guest_answers import GuestAnswers
from nova.conductor.hosts.registration import ServiceRegistry
from nova.conductor.nova_network.no_cloudpipes import NoCloudpipes
from nova.conductor.queries.aggregates import Aggregates
from nova.conductor.queries.certificates import Certificates
from nova.conductor.queries.consoles import ConsoleQueries
from nova.conductor.queries.ec2_ids import Ec2Ids
from nova.conductor.queries.external_events import ExternalEvents
from nova.conductor.queries.flavors import Flavors, Keypairs
from nova.conductor.queries.hosts import Hosts
from nova.conductor.queries.images import ImageQueries
from nova.conductor.queries.migrations import Migrations
from nova.conductor.queries.networks import Floating, Networks, SecurityGroups
from nova.conductor.queries.server_groups import ServerGroups
from nova.conductor.queries.server_parts import ServerParts
from nova.conductor.queries.servers import Servers
from nova.conductor.queries.usage import UsageQueries
from nova.conductor.queries.volumes import VolumeQueries
from nova.conductor.quota.quota import Quotas
from nova.conductor.upkeep.guest_takeover import GuestTakeovers
from nova.conductor.upkeep.orphans import Orphans
from nova.model.server.servers import CreatedServers, NewServer, ServerListQuery, ServerPage
from nova.rpc.contracts.conductor import ConductorRPC
from nova.rpc.contracts.conductor_metadata import ConductorMetadataRPC
from nova.rpc.contracts.conductor_proxy import ConductorProxyRPC
from nova.rpc.contracts.conductor_scheduler import ConductorSchedulerRPC
from nova.rpc.interface import Contract


def announced(deps: Deps, contract: type[Contract], whole: Assembled) -> Assembled:
    """Return the service with notifications about calls that change resources, if notifications are on."""
    for name in contract.methods:
        setattr(whole, name, announce.announced(deps, name, getattr(whole, name)))
    return whole


#: Deps, ``create_servers`` and ``list_servers`` -> the implementation of the calls about VPN servers.
MakeCloudpipes = Callable[
    [Deps, Callable[[NewServer], CreatedServers], Callable[[ServerListQuery], ServerPage]], object]


def conductor_service(deps: Deps, daemons: ServiceRegistry, cloudpipes: MakeCloudpipes = NoCloudpipes) -> Assembled:
    """Return the service behind the topic ``conductor``."""
    servers, admission, volumes = Servers(deps), CreateAdmission(deps), VolumeActions(deps)
    actions = (admission, Passwords(deps), Rescues(deps), Unshelving(deps), ImagesOfServers(deps),
               Rebuilds(deps, servers.get_server), Resizes(deps), Evacuations(deps), LiveMigrations(deps),
               InterfaceActions(deps), volumes, AttachmentUpkeep(deps))
    reads = (servers, Flavors(deps), Keypairs(deps), Certificates(deps), Quotas(deps), Hosts(deps), Aggregates(deps),
             Networks(deps), Floating(deps), SecurityGroups(deps), ImageQueries(deps), UsageQueries(deps),
             ServerGroups(deps), ServerParts(deps), Migrations(deps), ConsoleQueries(deps), VolumeQueries(deps),
             Ec2Ids(deps))
    whole = assemble(ConductorRPC, *actions, *reads, ControlDaemons(daemons), Enrolments(deps), Orphans(deps),
                     GuestTakeovers(deps), ExternalEvents(deps, servers.order_server, volumes.volume_extended),
                     cloudpipes(deps, admission.create_servers, servers.list_servers))
    return announced(deps, ConductorRPC, whole)


def cells_service(cells: LiveCells, daemons: ServiceRegistry, cloudpipes: MakeCloudpipes = NoCloudpipes) -> Assembled:
    """Return the service behind the topic ``conductor`` of a super conductor, over all its cells."""
    services = PerCell(lambda deps: cast(ConductorRPC, conductor_service(deps, daemons, cloudpipes)))
    return assemble_cells(cells, services, MergedServerLists(cells), MergedHostLists(cells),
                          MergedRecords(cells, services), MergedHostRecords(cells, services))


def proxies_service(daemons: ServiceRegistry) -> Assembled:
    """Return the service behind the topic ``conductor-proxy``."""
    return assemble(ConductorProxyRPC, ControlDaemons(daemons, PROXIES))


def schedulers_service(deps: Deps, daemons: ServiceRegistry) -> Assembled:
    """Return the service behind the topic ``conductor-scheduler``."""
    return assemble(ConductorSchedulerRPC, ControlDaemons(daemons, SCHEDULERS), Hosts(deps))


def metadata_service(deps: Deps, daemons: ServiceRegistry, cells: LiveCells | None = None) -> Assembled:
    """Return the service behind the topic ``conductor-metadata``, for guests of all ``cells``, or of one cell."""
    guests = GuestAnswers(deps, believed=True) if cells is None else MergedGuestAnswers(cells)
    return assemble(ConductorMetadataRPC, MetadataServices(deps, daemons), guests)
