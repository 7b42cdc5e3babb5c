"""Bodies of the bare metal proxy: anything, since nothing is done with them."""

from __future__ import annotations

from nova.web.schema import Body, row

ANYTHING = Body(row("(body)", "any"))
