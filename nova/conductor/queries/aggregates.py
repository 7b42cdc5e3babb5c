"""Host aggregates: lists and changes, and the images that their hosts cache in advance."""

from __future__ import annotations

import contextlib
import contextvars
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from nova import concurrency, errors, failures
from nova.conductor import zones
from nova.conductor.engine import announce
from nova.conductor.engine.deps import Deps
from nova.db.host import aggregates, hosts, services
from nova.db.sql.engine import Connection
from nova.model.host.aggregates import ZONE, Aggregate, AggregateUpdate, NewAggregate
from nova.model.host.services import ServiceQuery
from nova.model.image.images import Image

LOG = logging.getLogger(__name__)
#: Hosts -> a connection to the database of their cell; hosts that no longer exist are missing.
Places = Mapping[str, Connection]


class Aggregates:
    """The aggregate calls of ConductorRPC."""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps
        self._precaching = concurrency.WorkerPool(deps.settings.precache_concurrency, "precache")  # for all requests

    def list_aggregates(self) -> tuple[Aggregate, ...]:
        """Return all aggregates in the order of creation, with hosts and metadata; the API has no pages for them."""
        with self.deps.api.reading() as tx:
            return aggregates.select(tx)

    def get_aggregate(self, aggregate_id: int) -> Aggregate:
        """Return an aggregate. Raises aggregate.NotFound."""
        with self.deps.api.reading() as tx:
            return aggregates.get(tx, aggregate_id)

    def create_aggregate(self, new: NewAggregate) -> Aggregate:
        """Create an aggregate. A zone is stored in its metadata, under the key ``availability_zone``. Raises
        aggregate.NameTaken, aggregate.BadZone."""
        _check_zone_name(new.availability_zone)

        def write(tx: Connection) -> Aggregate:
            aggregates.changing(tx)
            return aggregates.get(tx, aggregates.insert(tx, new.name, new.availability_zone))
        return self.deps.api.transact(write)

    def update_aggregate(self, update: AggregateUpdate) -> Aggregate:
        """Change the named fields of an aggregate. The servers on its hosts then show the new zone.

        Raises aggregate.NotFound, aggregate.NameTaken; for a zone aggregate.BadZone, aggregate.SecondZone,
        aggregate.HasServers.
        """
        items = {ZONE: update.availability_zone} if update.changes_zone else {}

        def write(tx: Connection, cells: Places, aggregate: Aggregate) -> None:
            if update.name is not None:
                aggregates.rename(tx, aggregate.id, update.name)
            self._write_metadata(tx, cells, aggregate, items)
        return self._change(update.id, write)

    def set_aggregate_metadata(self, aggregate_id: int, items: Mapping[str, str | None]) -> Aggregate:
        """Set metadata keys and keep all others; the key ``availability_zone`` is the zone. Raises the errors of an
        update."""
        def write(tx: Connection, cells: Places, aggregate: Aggregate) -> None:
            self._write_metadata(tx, cells, aggregate, items)
        return self._change(aggregate_id, write)

    def delete_aggregate(self, aggregate_id: int) -> None:
        """Delete an aggregate. Raises aggregate.NotFound; aggregate.NotEmpty while it has hosts."""
        def write(tx: Connection) -> None:
            aggregates.changing(tx)
            aggregates.delete(tx, aggregates.get(tx, aggregate_id))
        self.deps.api.transact(write)

    def add_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        """Add a host to an aggregate; schedulers are updated after the commit.

        Raises aggregate.NotFound; host.NotFound if it has no nova-compute; aggregate.HostExists, aggregate.HostInZone,
        aggregate.PinnedServers; aggregate.BadZone for a zone that cannot have hosts.
        """
        def write(tx: Connection, cells: Places, aggregate: Aggregate) -> None:
            self._check_host(cells, host)
            self._check_has_hosts(aggregate.zone)
            if host in aggregate.hosts:
                raise errors.aggregate.HostExists(id=aggregate.id, host=host)
            zone = aggregates.zones(tx, [host]).get(host)
            if aggregate.zone is not None and zone not in (None, aggregate.zone):
                raise errors.aggregate.HostInZone(id=aggregate.id, host=host, zone=zone, wanted=aggregate.zone)
            self._check_pins(cells, "add", aggregate, host, zone, zone or aggregate.zone)
            aggregates.add_host(tx, aggregate.id, host)
        return self._change(aggregate_id, write, [host])

    def remove_aggregate_host(self, aggregate_id: int, host: str) -> Aggregate:
        """Remove a host from an aggregate, also if it no longer has a nova-compute. Raises aggregate.NotFound,
        aggregate.HostNotFound, aggregate.PinnedServers."""
        def write(tx: Connection, cells: Places, aggregate: Aggregate) -> None:
            if host not in aggregate.hosts:
                raise errors.aggregate.HostNotFound(id=aggregate.id, host=host)
            zone = aggregates.zones(tx, [host]).get(host)
            aggregates.remove_host(tx, aggregate.id, host)
            self._check_pins(cells, "remove", aggregate, host, zone, aggregates.zones(tx, [host]).get(host))
        return self._change(aggregate_id, write, [host])

    # -- changes

    def _change(self, key: int, write: Callable[[Connection, Places, Aggregate], None],
                moved: Collection[str] | None = None) -> Aggregate:
        """Change an aggregate under the change stamp, then update servers' rows and schedulers. ``write`` also reads
        cells. ``moved``: the hosts that were added or removed; None: the aggregate itself changed."""
        def changed(tx: Connection) -> tuple[Aggregate, Aggregate]:
            aggregates.changing(tx)
            before = aggregates.get(tx, key)
            write(tx, cells, before)
            if moved is None:
                aggregates.touch(tx, key)
            return before, aggregates.get(tx, key)
        with self._places(self.get_aggregate(key).hosts if moved is None else moved) as cells:
            before, after = self.deps.api.transact(changed)
        self.deps.feed.aggregates_changed()
        followers = moved if moved is not None else (after.hosts if before.zone != after.zone else ())
        if followers and (before.zone or after.zone):
            for cell, names in self._by_cell(followers):
                zones.follow(cell, names)
        return after

    def _write_metadata(self, tx: Connection, cells: Places, aggregate: Aggregate,
                        items: Mapping[str, str | None]) -> None:
        if ZONE in items and items[ZONE] != aggregate.zone:
            self._check_new_zone(tx, cells, aggregate, items[ZONE])
        aggregates.write_metadata(tx, aggregate.id, items)

    def _check_new_zone(self, tx: Connection, cells: Places, aggregate: Aggregate, zone: str | None) -> None:
        """Check that the aggregate may get this zone. Raises aggregate.BadZone, aggregate.SecondZone, or
        aggregate.HasServers if servers are on its hosts."""
        _check_zone_name(zone)
        if not aggregate.hosts:
            return
        self._check_has_hosts(zone)
        if zone is not None:
            for host, other in sorted(aggregates.zones(tx, aggregate.hosts, but=aggregate.id).items()):
                if other != zone:
                    raise errors.aggregate.SecondZone(id=aggregate.id, host=host, zone=other)
        busy = sorted({host for cell in {id(one): one for one in cells.values()}.values()
                       for host in hosts.with_servers(cell, aggregate.hosts)})
        if busy:
            raise errors.aggregate.HasServers(id=aggregate.id, hosts=", ".join(busy[:5]) + ", ..." * (len(busy) > 5))

    def _check_has_hosts(self, zone: str | None) -> None:
        """Raise aggregate.BadZone for the internal zone: it may name an aggregate, as clients' own tests do, but
        compute hosts would be lost in it."""
        if zone is not None and zone.strip() == self.deps.settings.internal_service_availability_zone:
            raise errors.aggregate.BadZone(zone=zone, reason="compute hosts cannot be in the zone of control services "
                                           "([DEFAULT]internal_service_availability_zone)")

    @staticmethod
    def _check_host(cells: Places, host: str) -> None:
        if host not in cells or services.COMPUTE not in services.binaries(cells[host], host):
            raise errors.host.NotFound(host=host)

    def _check_pins(self, cells: Places, act: str, aggregate: Aggregate, host: str, before: str | None,
                    after: str | None) -> None:
        """Raise aggregate.PinnedServers if the host would leave the zone that one of its servers requested."""
        default = self.deps.settings.default_availability_zone
        left, entered = before or default, after or default
        if left == entered:
            return
        if host in cells and hosts.has_pinned(cells[host], host, left):
            raise errors.aggregate.PinnedServers(act=act, host=host, id=aggregate.id, zone=left)

    def _by_cell(self, names: Collection[str]) -> list[tuple[Deps, list[str]]]:
        """Return the cells of these hosts, without hosts that no longer exist. Raises Unavailable for a cell that does
        not answer: its servers are unknown."""
        found: dict[str, tuple[Deps, list[str]]] = {}
        for host in names:
            with contextlib.suppress(errors.NotFound):
                cell = self.deps.cells.of_host(host)
                found.setdefault(cell.cell_uuid, (cell, []))[1].append(host)
        return [found[uuid] for uuid in sorted(found)]

    @contextlib.contextmanager
    def _places(self, names: Collection[str]) -> Iterator[Places]:
        """Provide connections to the cells of these hosts."""
        with contextlib.ExitStack() as stack:
            places: dict[str, Connection] = {}
            for cell, hosts_ in self._by_cell(names):
                places |= dict.fromkeys(hosts_, stack.enter_context(cell.cell.reading()))
            yield places

    # -- image caching

    def cache_images(self, aggregate_id: int, image_ids: tuple[str, ...]) -> None:
        """Start to cache images on the hosts of an aggregate; this returns before the hosts have them."""
        aggregate = self.get_aggregate(aggregate_id)
        images = tuple(self._image(image_id) for image_id in image_ids)
        if aggregate.hosts:
            concurrency.spawn(contextvars.copy_context().run, precache, self.deps, self._precaching, aggregate,
                              images, name="precache")

    def _image(self, image_id: str) -> Image:
        with failures.replaced((errors.NotFound, errors.Forbidden), lambda _: errors.aggregate.BadImage(
                image_id=image_id, reason="it does not exist or is not visible")):
            image: Image = self.deps.images.show(image_id, as_user=True)
        if image.status != "active":
            raise errors.aggregate.BadImage(image_id=image_id, reason=f"its status is {image.status}, not active")
        return image


def precache(deps: Deps, pool: concurrency.WorkerPool, aggregate: Aggregate, images: Sequence[Image]) -> None:
    """Have every host of the aggregate that is up fetch the images, as many hosts at a time as the pool has workers.

    Each result is only logged. A host that missed it (or whose conductor died) fetches the image with its first guest.
    """
    try:
        rows = [row for found in deps.cells.read(
            lambda tx: services.select(tx, ServiceQuery(binary=services.COMPUTE))) for row in found]
        down = deps.settings.service_down_time
        up = {row.host for row, clock in rows if services.value(row, clock, down, "").up}
    except errors.NovaError as error:
        LOG.error("images were not cached on the hosts of aggregate %s: %s", aggregate.name, error.message)
        return
    ready = [host for host in aggregate.hosts if host in up]
    for host in set(aggregate.hosts) - up:
        LOG.warning("images were not cached on host %s: it is down", host)
    progress = announce.CacheProgress(deps, aggregate, len(ready))
    progress.begun()
    asked = [pool.submit(contextvars.copy_context().run, _on_host, deps, host, images, progress) for host in ready]
    total = sum(bool(future.result()) for future in asked)
    progress.ended()
    LOG.info("aggregate %s: %d images are ready on %d of %d hosts", aggregate.name, len(images), total,
             len(aggregate.hosts))


def _on_host(deps: Deps, host: str, images: Sequence[Image], progress: announce.CacheProgress) -> bool:
    """Cache the images on a host; return whether it has all of them now."""
    try:
        results: Any = deps.cells.of_host(host).compute.cache_images(host, tuple(images))
    except errors.NovaError as error:
        LOG.error("images were not cached on host %s: %s", host, error.message)
        progress.host_done(host, (), [image.id for image in images])
        return False
    for one in results:
        log = LOG.error if one.state == "error" else LOG.info
        log("image %s on host %s: %s%s", one.image_id, host, one.state, f" ({one.error})" * bool(one.error))
    ready = [one.image_id for one in results if one.state in ("cached", "existing")]
    progress.host_done(host, ready, [one.image_id for one in results if one.image_id not in ready])
    return len(ready) == len(results)


def _check_zone_name(zone: str | None) -> None:
    if zone is not None and (not zone.strip() or ":" in zone):
        raise errors.aggregate.BadZone(zone=zone, reason="a zone name must not be empty or contain a colon")
