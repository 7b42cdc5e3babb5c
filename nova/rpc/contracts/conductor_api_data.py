"""The part of ``ConductorRPC`` about the api database, except servers."""

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
        """Return a page of groups with their members."""

    @call(reads=True, since="1.1")
    def get_server_group(self, uuid: str, scope: Scope) -> ServerGroup:
        """Return one group. Raises NotFound."""

    @call(since="1.1")
    def create_server_group(self, group: NewServerGroup) -> ServerGroup:
        """Create a group that the caller owns. Raises OverQuota."""

    @call(since="1.1")
    def delete_server_group(self, uuid: str, scope: Scope) -> None:
        """Delete a group; its servers stay. Raises NotFound."""

    # flavors
    @call(reads=True)
    def list_flavors(self, query: FlavorQuery) -> tuple[Flavor, ...]:
        """Return a page of flavors with their extra specs."""

    @call(reads=True)
    def get_flavor(self, flavorid: str, scope: Scope) -> Flavor:
        """Return one live flavor that the scope may use (any flavor, for an unlimited scope)."""

    @call()
    def create_flavor(self, flavor: NewFlavor) -> Flavor:
        """Create a flavor. Raises Conflict if its name or flavorid is taken."""

    @call()
    def update_flavor(self, flavorid: str, description: str | None) -> Flavor:
        """Change a flavor's description, the only field that can change."""

    @call()
    def delete_flavor(self, flavorid: str) -> None:
        """Delete a flavor. Servers keep their copy."""

    @call()
    def set_flavor_specs(self, flavorid: str, specs: Mapping[str, str]) -> Mapping[str, str]:
        """Add or replace extra specs, and return all of them."""

    @call()
    def delete_flavor_spec(self, flavorid: str, key: str) -> None:
        """Delete an extra spec. Raises NotFound if the flavor has no such key."""

    @call()
    def change_flavor_access(self, flavorid: str, project_id: str, allowed: bool) -> tuple[str, ...]:
        """Grant or revoke a project's access, and return all projects that have it. Raises Conflict if it had access
        already; NotFound if it had none."""

    # keypairs
    @call(reads=True)
    def list_keypairs(self, query: KeypairQuery) -> tuple[Keypair, ...]:
        """Return a user's keypairs by name."""

    @call(reads=True)
    def get_keypair(self, user_id: str, name: str) -> Keypair:
        """Return one keypair. Raises NotFound."""

    @call()
    def create_keypair(self, keypair: NewKeypair) -> Keypair:
        """Create a keypair. Raises Conflict if the name is taken, and OverQuota."""

    @call()
    def delete_keypair(self, user_id: str, name: str) -> None:
        """Delete a keypair. Raises NotFound."""

    # certificates, for nova-cert
    @call(since="1.8")
    def keep_certificate(self, certificate: CertificateRecord) -> None:
        """Record the owner of a certificate file; a row of that file is replaced. Idempotent."""

    @call(reads=True, since="1.8")
    def list_certificates(self, query: CertificateQuery) -> tuple[CertificateRecord, ...]:
        """Return the certificates that are not revoked, at most 1,000. Raises Invalid if the query names neither user
        nor project."""

    @call(since="1.8")
    def forget_certificates(self, file_names: tuple[str, ...]) -> None:
        """Delete the rows of revoked certificates. Idempotent."""

    # quotas
    @call(reads=True)
    def get_quotas(self, project_id: str, user_id: str | None, usage: bool) -> QuotaSet:
        """Return the effective limits; with ``usage``, also the current usage."""

    @call(reads=True)
    def get_default_quotas(self) -> QuotaSet:
        """Return the limits of a project without limits of its own."""

    @call()
    def update_quotas(self, update: QuotaUpdate) -> QuotaSet:
        """Change limits. Raises Invalid if a limit is below the current usage (unless forced) or above the
        project's."""

    @call()
    def delete_quotas(self, project_id: str, user_id: str | None) -> None:
        """Reset limits to the defaults."""

    @call(reads=True, since="1.1")
    def get_quota_class(self, class_name: str) -> QuotaClass:
        """Return a class's limits, with configured defaults for those it does not set. ``default``: the base of all
        projects."""

    @call(since="1.1")
    def update_quota_class(self, update: QuotaClass) -> QuotaClass:
        """Write some limits of a class, and return all of them."""

    # aggregates
    @call(reads=True, since="1.1")
    def list_aggregates(self) -> tuple[Aggregate, ...]:
        """Return all aggregates, in three statements."""

    @call(reads=True, since="1.1")
    def get_aggregate(self, aggregate_id: int) -> Aggregate:
        """Return one aggregate. Raises NotFound."""

    @call(since="1.1")
    def create_aggregate(self, new: NewAggregate) -> Aggregate:
        """Create an aggregate. Raises Conflict if the name is taken; Invalid if the zone has no valid name."""

    @call(since="1.1")
    def update_aggregate(self, update: AggregateUpdate) -> Aggregate:
        """Change an aggregate. Raises Conflict if the name is taken; Invalid if the zone cannot change because servers
        are in it."""

    @call(since="1.1")
    def set_aggregate_metadata(self, aggregate_id: int, items: Mapping[str, str | None]) -> Aggregate:
        """Write metadata keys; None deletes a key. Raises Invalid as for an update."""

    @call(since="1.1")
    def delete_aggregate(self, aggregate_id: int) -> None:
        """Delete an aggregate. Raises Invalid while hosts are in it."""

    @call(since="1.1")
    def add_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        """Add a host. Raises NotFound for the aggregate or host. Raises Conflict if the host is in it, would get a
        second zone, or would leave the zone of one of its servers."""

    @call(since="1.1")
    def remove_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        """Remove a host. Raises NotFound for the aggregate, or the host in it. Raises Conflict if the host would leave
        the zone that one of its servers requested."""

    @call(since="1.1")
    def cache_images(self, aggregate_id: int, image_ids: tuple[str, ...]) -> None:
        """Request that the hosts fetch images; returns before they do. Raises NotFound for the aggregate, Invalid for
        an image."""
