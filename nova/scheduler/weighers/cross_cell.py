"""CrossCellWeigher: for a move, hosts in the cell of the server's own host are better.

A scheduler knows the hosts of only one cell, so every host is in the server's cell, and the weigher has no effect. With
hosts of several cells, each would report its cell, to be compared with that of ``request.source_host``.
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
