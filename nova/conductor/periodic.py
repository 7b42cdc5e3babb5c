"""What a conductor looks after by itself: each bounded, each cheap when there is nothing to do."""

from __future__ import annotations

import logging

from nova.conductor.world import World
from nova.db import ledger, servers, states

LOG = logging.getLogger(__name__)

BATCH = 200
UNBORN_S = 600


def close_unborn(world: World) -> None:
    """Ledger rows without a server after ten minutes: a crash between the two transactions; nobody got a 202."""
    with world.api.reading() as tx:
        old = ledger.unborn(tx, UNBORN_S, BATCH * 50)
    if not old:
        return
    with world.cell.reading() as tx:
        born = servers.epochs(tx, old)
    lost = [uuid for uuid in old if uuid not in born]
    world.api.transact(lambda tx: ledger.close(tx, dict.fromkeys(lost, 2**62)))
    for uuid in lost:
        LOG.warning("closed the ledger row of a server that was never made; its quota is free", extra={"server": uuid})


def purge(world: World) -> int:
    """Remove what was deleted before the retention time, one small batch a turn; how many servers."""
    keep = world.settings.deleted_retention_s
    if not keep:
        return 0
    count = world.cell.transact(lambda tx: servers.purge(tx, keep, BATCH))
    world.api.transact(lambda tx: ledger.purge(tx, keep, BATCH))
    if count:
        LOG.info("removed %d servers deleted more than %d days ago", count, keep // 86400)
    return count


def forget_runners(world: World) -> None:
    world.cell.transact(states.drop_dead_runners)


#: (seconds, job, name), run by the first worker of each conductor.
JOBS = ((120.0, close_unborn, "ledger sweep"), (60.0, purge, "purge"), (600.0, forget_runners, "dead runners"))
