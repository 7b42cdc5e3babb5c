"""CrossCellWeigher: for a move, hosts in the cell of the server's own host are better.

A scheduler knows the hosts of one cell, so that each of them is in the cell the server comes from, and it says nothing.
Hosts of several cells would tell their cell; then this compares it with that of ``request.source_host``.
"""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class CrossCellWeigher(Weigher):
    multiplier_option = "cross_cell_move_weight_multiplier"
    reads = ()

    def neutral(self, request: PlacementRequest) -> bool:
        return True

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return 0.0
