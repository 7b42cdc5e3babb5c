"""Common parts of the proxies: validation of IDs, translation of refusals, and a server's ports."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence

from nova import errors, failures
from nova.clients.neutron import Neutron
from nova.conductor.engine.deps import Deps
from nova.db.server import servers
from nova.db.server.servers import DetailRow
from nova.model.base import Scope
from nova.model.network.ports import Port, belongs


def known_id(id: str, what: str) -> str:
    """Return ``id`` as Neutron writes it. Raises network.BadId if it is not a valid ID."""
    with failures.replaced(ValueError, lambda _: errors.network.BadId(what=what)):
        return str(uuid.UUID(id))


def is_id(text: str) -> bool:
    """True if the text is a UUID in any form."""
    with contextlib.suppress(ValueError):
        uuid.UUID(text)
        return True
    return False


@contextlib.contextmanager
def translated_errors(what: str, id: str, conflict: type[errors.NovaError] = errors.network.Refused) -> Iterator[None]:
    """Translate Neutron's errors. A missing resource becomes Absent with this name, unless Neutron reports another
    missing one (ReferenceMissing, with its text). A conflict becomes ``conflict``, with Neutron's reason."""
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


def server_row(deps: Deps, uuid: str, scope: Scope = ALL) -> DetailRow:
    """Return the server's row. Raises NotFound outside the scope."""
    with deps.cell.reading() as tx:
        return servers.detail_row(tx, uuid, scope, False)


def ports_of(client: Neutron, row: DetailRow) -> Sequence[Port]:
    """Return a server's ports in the guest's order, read with nova's own credentials, which see all. Ports of other
    projects are left out: any user can name this server in a port of theirs."""
    order = {one.id: place for place, one in enumerate(row.interfaces or ())}
    own = [port for port in client.ports_of([row.uuid]) if belongs(port, row.uuid, row.project_id, order)]
    return sorted(own, key=lambda port: (order.get(port.id, len(order)), port.id))
