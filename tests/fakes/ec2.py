"""The EC2 API over a fake conductor, through the RPC codec: ``Ec2Client().ask("DescribeInstances")``."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import webob
from defusedxml import ElementTree

from nova import errors
from nova.legacy.ec2 import app
from nova.legacy.ec2.ids import IdCache
from nova.legacy.ec2.request import Ec2Options, Ec2Site
from nova.legacy.signatures.request import SignatureFault, SignatureRefused
from nova.legacy.signatures.signers import Signers, believed
from nova.model.ec2 import KINDS, ec2_id
from nova.model.server.servers import ServerPage
from tests.fakes.api import usual
from tests.fakes.conductor import FakeConductor

TODAY, OLD = "2016-11-15", "2014-02-01"
DEMO, OTHER, READER, ADMIN = "demo:demo", "other:other", "reader:demo", "admin:admin"
PATH = "/services/Cloud"
TESTS = {"in": lambda value, wanted: value in wanted, "eq": operator.eq}


class Ec2Conductor(FakeConductor):
    """Conductor that also has numbers of ids; ``numbers``: (kind, id) -> number. It finds servers by conditions."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[tuple[str, str], int] = {}
        self.given(assign_ec2_numbers=self._numbers_of, get_ec2_ids=self._meant_by, list_servers=self.listed)

    def number(self, prefix: str, id: str) -> str:
        """Return the EC2 id of a resource."""
        return ec2_id(prefix, self._numbers_of(KINDS[prefix], (id,))[id])

    def _numbers_of(self, kind: str, ids: Iterable[str]) -> Mapping[str, int]:
        return {id: self.numbers.setdefault((kind, id), len(self.numbers) + 1) for id in ids}

    def _meant_by(self, kind: str, wanted: Iterable[int]) -> Mapping[int, str]:
        numbers = {number: id for (known, id), number in self.numbers.items() if known == kind}
        return {number: numbers[number] for number in wanted if number in numbers}

    def listed(self, query: Any) -> Any:
        """Return the servers like the base class, but apply conditions and omit deleted servers."""
        found = [one for one in reversed(self.servers.values()) if query.scope.project_id in (None, one.project_id)
                 and (not one.deleted or query.deleted != "live")
                 and all(TESTS[one_of.op](getattr(one, one_of.column), one_of.values)
                         for one_of in query.conditions)]
        uuids = [one.uuid for one in found]
        if query.page.marker not in (None, *uuids):
            raise errors.api.PageMarkerNotFound(marker=query.page.marker)
        first = uuids.index(query.page.marker) + 1 if query.page.marker else 0
        return ServerPage(servers=tuple(found[first:first + (query.page.limit or len(found))]))


class Believing(Signers):
    """Signers that trust the access key, in a parameter; the user `reader` has the role reader."""

    def ec2(self, request: Any, now: float) -> Any:
        for name, value in (*request.query_pairs, *request.form):
            if name == "AWSAccessKeyId":
                found = believed(value)
                return found | {"roles": ("reader",)} if found["user_id"] == "reader" else found
        raise SignatureRefused(SignatureFault.UNSIGNED)


@dataclass(frozen=True)
class Ec2Answer:
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def tree(self) -> Any:
        """The root element of the answer, without its namespace."""
        root = ElementTree.fromstring(self.body)
        for one in root.iter():
            one.tag = one.tag.rpartition("}")[2]
        return root

    @property
    def code(self) -> str:
        """The code of an error; empty for other answers."""
        return str(self.tree.findtext("Errors/Error/Code") or "")

    @property
    def message(self) -> str:
        return str(self.tree.findtext("Errors/Error/Message") or "")

    @property
    def refusal(self) -> tuple[int, str]:
        return self.status, self.code

    def text(self, path: str) -> str | None:
        found: str | None = self.tree.findtext(path)
        return found

    def texts(self, path: str) -> list[str]:
        return [one.text or "" for one in self.tree.findall(path)]


class Ec2Client:
    """A client. ``conductor``: its state; ``options``: for Ec2Options; ``objects``: a client of the object store."""

    def __init__(self, conductor: Ec2Conductor | None = None, objects: Any = None, **options: Any) -> None:
        self.conductor = conductor or Ec2Conductor()
        client = self.conductor.client()
        self.site = Ec2Site(client, usual()[1], IdCache(client), Ec2Options(**options), objects)
        self.application = app.build(self.site, Believing())

    def ask(self, action: str, params: Mapping[str, object] | None = None, user: str = DEMO, version: str = TODAY,
            ) -> Ec2Answer:
        pairs = [("Action", action), ("Version", version), ("AWSAccessKeyId", user),
                 *((name, str(value)) for name, value in (params or {}).items())]
        return self.post(urlencode(pairs, errors="surrogateescape").encode())

    def post(self, body: bytes, path: str = PATH, method: str = "POST", **environ: Any) -> Ec2Answer:
        request = webob.Request.blank(path, method=method, environ=environ)
        request.body = body
        request.content_type = "application/x-www-form-urlencoded"
        found = request.get_response(self.application)
        return Ec2Answer(found.status_int, found.body, dict(found.headers))
