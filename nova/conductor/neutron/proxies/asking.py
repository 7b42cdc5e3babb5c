"""What the proxies have in common: ids that can be, refusals in our words, and a server's ports."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence

from nova import errors
from nova.conductor.engine.deps import Deps
from nova.db.server import servers
from nova.db.sql.types import AnyColumn, AnyRow
from nova.model.base import Scope
from nova.model.network.ports import Port, belongs


def known_id(id: str, what: str) -> str:
    """``id`` as Neutron writes it. network.BadId: it can name nothing there."""
    try:
        return str(uuid.UUID(id))
    except ValueError:
        raise errors.network.BadId(what=what) from None


def is_id(text: str) -> bool:
    """Whether the text is a uuid in any form."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def said(what: str, id: str, conflict: type[errors.NovaError] = errors.network.Refused) -> Iterator[None]:
    """A missing thing is Absent by this name, unless Neutron says that it misses another one (ReferenceMissing, in
    its words); a conflict is ``conflict``, with Neutron's reason."""
    try:
        yield
    except errors.service.ReferenceMissing:
        raise
    except errors.service.ResourceNotFound:
        raise errors.network.Absent(what=what, id=id) from None
    except errors.service.Conflict as error:
        if isinstance(error, conflict):
            raise
        raise conflict(reason=error.data.get("reason", error.message)) from error


ALL = Scope()


def server_row(deps: Deps, uuid: str, scope: Scope = ALL) -> AnyRow:
    """The server's row. NotFound outside the scope."""
    with deps.cell.reading() as tx:
        return servers.detail_row(tx, uuid, scope, False)


def ports_of(client: AnyColumn, row: AnyRow) -> Sequence[Port]:
    """A server's ports, in the order in which the guest has them; our own credentials see them all. No others' that say
    they are its: anybody can say so of a port of theirs."""
    order = {one.id: place for place, one in enumerate(row.interfaces or ())}
    own = [port for port in client.ports_of([row.uuid]) if belongs(port, row.uuid, row.project_id, order)]
    return sorted(own, key=lambda port: (order.get(port.id, len(order)), port.id))
