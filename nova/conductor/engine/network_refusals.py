"""Why a request for networks, addresses or groups can not be: whichever back end says it."""

from __future__ import annotations



