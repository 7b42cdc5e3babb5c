"""A client of /v2 that speaks XML, over a fake conductor that holds one of most things."""

from __future__ import annotations

from typing import Any

import webob

from nova.legacy.xml.negotiation import XML
from tests.fakes.api import ADMIN, configuration
from tests.fakes.whole_api import WholeApiClient
from tests.unit.legacy.xml.samples import parsed


class XMLClient(WholeApiClient):
    """Paths begin below /v2. ``say`` sends a body in XML; answers come in XML."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"token": ADMIN, "conf": configuration(use_neutron=False), **options})
        self.prefix = "/v2"

    def ask(self, path: str, accept: str | None = XML, **headers: str) -> webob.Response:
        return self.get(path, headers={**({"Accept": accept} if accept else {}), **headers})

    def say(self, method: str, path: str, body: str | bytes, kind: str | None = XML,
            accept: str | None = XML) -> webob.Response:
        raw = body.encode() if isinstance(body, str) else body
        headers = {**({"Accept": accept} if accept else {}), "Content-Type": kind or ""}
        return self.request(method, path, raw=raw, headers=headers)


def tree(answer: webob.Response) -> Any:
    """The root element of an answer in XML."""
    assert answer.content_type.endswith("xml"), (answer.status, answer.content_type, answer.text)
    return parsed(answer.body)
