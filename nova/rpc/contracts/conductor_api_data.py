"""The part of ``ConductorRPC`` about what the api database keeps beside servers."""

from __future__ import annotations

from collections.abc import Mapping

from nova.model.base import Scope
from nova.model.flavor.flavors import Flavor, FlavorQuery, NewFlavor
from nova.model.host.aggregates import Aggregate, AggregateUpdate, NewAggregate
from nova.model.quota.quotas import QuotaClass, QuotaSet, QuotaUpdate
from nova.model.security.certificates import CertificateQuery, CertificateRecord
from nova.model.server.keypairs import Keypair, KeypairQuery, NewKeypair
from nova.model.server.server_groups import NewServerGroup, ServerGroup, ServerGroupQuery
from nova.rpc.interface import call


class ApiDatabaseCalls:
    """Server groups, flavors, key pairs, certificates, quotas, aggregates."""

    # server groups
    @call(reads=True, since="1.1")
    def list_server_groups(self, query: ServerGroupQuery) -> tuple[ServerGroup, ...]:
        """A page of groups with their members."""

    @call(reads=True, since="1.1")
    def get_server_group(self, uuid: str, scope: Scope) -> ServerGroup:
        """One group, or NotFound."""

    @call(since="1.1")
    def create_server_group(self, group: NewServerGroup) -> ServerGroup:
        """Make a group of the caller's. OverQuota."""

    @call(since="1.1")
    def delete_server_group(self, uuid: str, scope: Scope) -> None:
        """The group goes, its servers stay. NotFound."""

    # flavors
    @call(reads=True)
    def list_flavors(self, query: FlavorQuery) -> tuple[Flavor, ...]:
        """A page of flavors with their extra specs."""

    @call(reads=True)
    def get_flavor(self, flavorid: str, scope: Scope) -> Flavor:
        """One live flavor the scope may use (any, for an unlimited scope)."""

    @call()
    def create_flavor(self, flavor: NewFlavor) -> Flavor:
        """Conflict when name or flavorid is taken."""

    @call()
    def update_flavor(self, flavorid: str, description: str | None) -> Flavor:
        """Only the description can change."""

    @call()
    def delete_flavor(self, flavorid: str) -> None:
        """Servers keep their copy."""

    @call()
    def set_flavor_specs(self, flavorid: str, specs: Mapping[str, str]) -> Mapping[str, str]:
        """Add or replace extra specs; all of them after it."""

    @call()
    def delete_flavor_spec(self, flavorid: str, key: str) -> None:
        """NotFound when the flavor has no such key."""

    @call()
    def change_flavor_access(self, flavorid: str, project_id: str, allowed: bool) -> tuple[str, ...]:
        """Give or take a project's access; all that have it after it. Conflict: had it already; NotFound: had not."""

    # keypairs
    @call(reads=True)
    def list_keypairs(self, query: KeypairQuery) -> tuple[Keypair, ...]:
        """A user's keypairs by name."""

    @call(reads=True)
    def get_keypair(self, user_id: str, name: str) -> Keypair:
        """One keypair, or NotFound."""

    @call()
    def create_keypair(self, keypair: NewKeypair) -> Keypair:
        """Conflict: the name is taken. OverQuota."""

    @call()
    def delete_keypair(self, user_id: str, name: str) -> None:
        """NotFound when there is none."""

    # certificates, for nova-cert
    @call(since="1.8")
    def keep_certificate(self, certificate: CertificateRecord) -> None:
        """Whose a file is from now on: a row of that file is replaced. May be repeated."""

    @call(reads=True, since="1.8")
    def list_certificates(self, query: CertificateQuery) -> tuple[CertificateRecord, ...]:
        """The certificates that were not revoked, 1,000 at most. Invalid: the query names neither user nor project."""

    @call(since="1.8")
    def forget_certificates(self, file_names: tuple[str, ...]) -> None:
        """They are revoked: their rows go. May be repeated."""

    # quotas
    @call(reads=True)
    def get_quotas(self, project_id: str, user_id: str | None, usage: bool) -> QuotaSet:
        """Limits in force; with ``usage``, what is in use too."""

    @call(reads=True)
    def get_default_quotas(self) -> QuotaSet:
        """What a project without limits of its own has."""

    @call()
    def update_quotas(self, update: QuotaUpdate) -> QuotaSet:
        """Invalid when a limit is below what is in use (unless forced) or above the project's."""

    @call()
    def delete_quotas(self, project_id: str, user_id: str | None) -> None:
        """Back to the defaults."""

    @call(reads=True, since="1.1")
    def get_quota_class(self, class_name: str) -> QuotaClass:
        """A class's limits, the configured defaults where it has none. ``default`` is what all projects begin from."""

    @call(since="1.1")
    def update_quota_class(self, update: QuotaClass) -> QuotaClass:
        """Write some limits of a class; all of them after it."""

    # aggregates
    @call(reads=True, since="1.1")
    def list_aggregates(self) -> tuple[Aggregate, ...]:
        """All of them, in three statements."""

    @call(reads=True, since="1.1")
    def get_aggregate(self, aggregate_id: int) -> Aggregate:
        """One aggregate, or NotFound."""

    @call(since="1.1")
    def create_aggregate(self, new: NewAggregate) -> Aggregate:
        """Conflict: the name is taken. Invalid: no name for a zone."""

    @call(since="1.1")
    def update_aggregate(self, update: AggregateUpdate) -> Aggregate:
        """Conflict: the name is taken. Invalid: the zone cannot change while servers are in it."""

    @call(since="1.1")
    def set_aggregate_metadata(self, aggregate_id: int, items: Mapping[str, str | None]) -> Aggregate:
        """Write keys; None takes one away. Invalid as for an update."""

    @call(since="1.1")
    def delete_aggregate(self, aggregate_id: int) -> None:
        """Invalid while hosts are in it."""

    @call(since="1.1")
    def add_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        """NotFound: aggregate or host. Conflict: it is in there, or would get a second zone, or leave a server's."""

    @call(since="1.1")
    def remove_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        """NotFound: aggregate, or host in it. Conflict: it would leave the zone that a server of it asked for."""

    @call(since="1.1")
    def cache_images(self, aggregate_id: int, image_ids: tuple[str, ...]) -> None:
        """Have the hosts fetch images; answered before they did. NotFound: the aggregate. Invalid: an image."""
