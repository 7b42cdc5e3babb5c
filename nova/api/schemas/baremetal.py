"""Bodies of the bare metal proxy: any content, because it is not used."""

from __future__ import annotations

from nova.web.schema import Body, row

ANYTHING = Body(row("(body)", "any"))
