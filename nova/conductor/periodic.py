"""What a conductor looks after by itself: each bounded, each cheap when there is nothing to do."""

from __future__ import annotations

import logging

from nova.conductor import consoles, usage_audit
from nova.conductor.recounts import Recount
from nova.conductor.world import World
from nova.conductor.zones import ForgottenHosts, ZoneSweep
from nova.db import ledger, servers, states

LOG = logging.getLogger(__name__)

BATCH, PAGE = 200, 1000
UNBORN_S = 600


class LedgerSweep:
    """Ledger rows without a server after ten minutes: a crash between the two transactions; nobody got a 202.

    Every row is looked at once by each process: a server that was there once is no case for this.
    """

    def __init__(self) -> None:
        self._seen = 0  # the last key that was looked at

    def __call__(self, world: World) -> None:
        while True:
            with world.api.reading() as tx:
                page = ledger.grown(tx, self._seen, UNBORN_S, PAGE)
            self._close_unborn(world, list(page))
            if page:
                self._seen = max(page.values())
            if len(page) < PAGE:
                return

    def _close_unborn(self, world: World, uuids: list[str]) -> None:
        if not uuids:
            return
        with world.cell.reading() as tx:
            born = servers.epochs(tx, uuids)
        lost = [uuid for uuid in uuids if uuid not in born]
        if not lost:
            return
        world.api.transact(lambda tx: ledger.close(tx, dict.fromkeys(lost, 2**62)))
        for uuid in lost:
            LOG.warning("closed the ledger row of a server that was never made; its quota is free",
                        extra={"server": uuid})


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
JOBS = ((120.0, LedgerSweep(), "ledger sweep"), (60.0, purge, "purge"), (600.0, forget_runners, "dead runners"),
        (60.0, usage_audit.run, "usage audit"), (60.0, ZoneSweep(), "servers' zones"),
        (300.0, ForgottenHosts(), "forgotten hosts"), (300.0, Recount(), "recount"),
        (60.0, consoles.drop_expired, "expired consoles"))
