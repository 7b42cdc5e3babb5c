"""What several workflows' endings write on the servers' rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nova.conductor.engine.operation import Op
from nova.db.server.states import PerServer
from nova.model.server.servers import ServerMemo


def powered(ops: Sequence[Op]) -> Mapping[str, object]:
    """Power states as the hosts told them; where one told none, what is known stays."""
    reported = {op.uuid: op.progress.power_state for op in ops if op.progress.power_state}
    return {"power_state": PerServer(reported)} if reported else {}


def memo_of(op: Op) -> ServerMemo:
    """What the server remembers; an empty memo where it has none."""
    found: ServerMemo | None = op.server.memo
    return found or ServerMemo()


def remembering(ops: Sequence[Op], **fields: object) -> Mapping[str, object]:
    """The servers' memos with these fields."""
    return {"memo": PerServer({op.uuid: msgspec.structs.replace(memo_of(op), **fields) for op in ops})}
