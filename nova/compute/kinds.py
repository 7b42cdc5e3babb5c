"""Which order is done by whom."""

from __future__ import annotations

from collections.abc import Mapping

from nova.compute.guests.actions import Life
from nova.compute.guests.build import Tools
from nova.compute.guests.cold_moves import Moves
from nova.compute.guests.interfaces import Plugging
from nova.compute.guests.lifecycle import Guests
from nova.compute.guests.live_moves import LiveGuests
from nova.compute.guests.snapshots import SnapshotsOfGuests
from nova.compute.orders import orders
from nova.compute.orders.batches import Do


def table(tools: Tools, guests: Guests, moves: Moves, live: LiveGuests) -> Mapping[str, Do]:
    """One row a kind of order."""
    life, snapshots, plugging = Life(tools, guests), SnapshotsOfGuests(tools), Plugging(tools)
    return {
        orders.BUILD: guests.build,
        orders.DESTROY: guests.destroy,
        orders.START: guests.start,
        orders.STOP: guests.stop,
        orders.REBOOT: guests.reboot,
        orders.PAUSE: life.pause,
        orders.UNPAUSE: life.unpause,
        orders.SUSPEND: life.suspend,
        orders.RESUME: life.resume,
        orders.RESCUE: life.rescue,
        orders.UNRESCUE: life.unrescue,
        orders.REBUILD: life.rebuild,
        orders.SET_PASSWORD: life.set_password,
        orders.CRASH: life.crash,
        orders.SNAPSHOT: snapshots.take,
        orders.UPLOAD: snapshots.upload,
        orders.DROP_SNAPSHOT: snapshots.drop,
        orders.LEAVE: moves.leave,
        orders.RETURN: moves.take_back,
        orders.FORGET: moves.forget,
        orders.FETCH: moves.fetch,
        orders.FINISH: moves.finish,
        orders.DESCRIBE: live.describe,
        orders.MIGRATE: live.migrate,
        orders.PREPARE: live.prepare,
        orders.LAND: live.land,
        orders.ATTACH: plugging.attach,
        orders.DETACH: plugging.detach,
    }
