"""Changes to the servers' rows that the endings of several workflows share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nova.conductor.engine.operation import Op
from nova.db.server.states import PerServer
from nova.model.server.servers import ServerMemo


def powered(ops: Sequence[Op]) -> Mapping[str, object]:
    """Return the power states that the hosts reported; servers without a report keep their power state."""
    reported = {op.uuid: op.progress.power_state for op in ops if op.progress.power_state}
    return {"power_state": PerServer(reported)} if reported else {}


def memo_of(op: Op) -> ServerMemo:
    """Return the server's memo, or an empty one."""
    found: ServerMemo | None = op.server.memo
    return found or ServerMemo()


def remembering(ops: Sequence[Op], **fields: object) -> Mapping[str, object]:
    """Return the servers' memos, with these fields replaced."""
    return {"memo": PerServer({op.uuid: msgspec.structs.replace(memo_of(op), **fields) for op in ops})}
