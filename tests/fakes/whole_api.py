"""The complete API, with XML and with the operations that are not part of the core."""

from __future__ import annotations

from nova.legacy.api_extras import EXTRAS
from tests.fakes.api import ApiClient


class WholeApiClient(ApiClient):
    extras = EXTRAS
