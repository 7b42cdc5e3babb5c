"""ImagePropertiesWeigher: hosts whose servers' images share properties with the request's are better.

``image_props_weight_setting`` defines the properties and their weights. The conductor counts the matches if the
multiplier is not 0 (``nova/db/placement/placement_facts.py``).
"""

from __future__ import annotations

from nova.model.scheduling.decisions import PlacementRequest
from nova.scheduler.views import HostView
from nova.scheduler.weighers import Weigher


class ImagePropertiesWeigher(Weigher):
    multiplier_option = "image_props_weight_multiplier"
    reads = ("image_matches",)

    def neutral(self, request: PlacementRequest) -> bool:
        return not request.image_matches

    def weigh(self, host: HostView, request: PlacementRequest) -> float:
        return request.image_matches.get(host.host, 0.0)
