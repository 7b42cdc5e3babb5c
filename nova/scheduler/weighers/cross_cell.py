"""CrossCellWeigher: for a move that may go to another cell, hosts in the server's own cell are better."""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class CrossCellWeigher(Weigher):
    multiplier_option = "cross_cell_move_weight_multiplier"
    reads = ("source_cell",)

    def neutral(self, request: PlacementRequest) -> bool:
        return not request.source_cell

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return 1.0 if host.state.cell == request.source_cell else -1.0
