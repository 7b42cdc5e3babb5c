"""Which order is done by whom."""

from __future__ import annotations

from collections.abc import Mapping

from nova.compute import orders
from nova.compute.batches import Do
from nova.compute.guest_steps.build import Tools
from nova.compute.guests import Guests
from nova.compute.life import Life
from nova.compute.live import LiveGuests
from nova.compute.moves import Moves
from nova.compute.plugging import Plugging
from nova.compute.snapshots import SnapshotsOfGuests


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
