"""An operation of the API, made up: as ``doc/contributing.rst`` says that they are added."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nova.api import app
from nova.api.request import Request
from nova.api.routing import Route
from nova.api.view import Out, View, answers
from nova.model.base import Value
from nova.web.schema import Body, row
from tests.fakes.api import ADMIN, DEMO, ApiClient

RULE = "os_compute_api:os-hypervisors:list"  # of administrators
POLISH = Body(row("polish", "object", required=True),
              row("polish.wax", "string", allowed=("bee", "shoe"), required=True),
              row("polish.layers", "integer", min=1, since="2.90"))


class Shine(Value):
    wax: str
    layers: int


SHINE = View(Out("wax", "wax"), Out("layers", "layers", since="2.90"), of=Shine)


@answers({"shine": SHINE})
def polish(req: Request, name: str) -> dict[str, object]:
    asked = req.body["polish"]
    return {"shine": SHINE(Shine(wax=f"{asked['wax']} on {name}", layers=asked.get("layers", 1)), req)}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiClient]:
    route = Route("POST", "/os-polish/{name}", polish, RULE, POLISH, code=202)
    monkeypatch.setattr(app, "ROUTES", (*app.ROUTES, route))
    app.table.cache_clear()
    app.router.cache_clear()
    yield ApiClient(token=ADMIN, version="2.90")
    app.table.cache_clear()
    app.router.cache_clear()


def test_made_up_operation_when_asked_then_it_answers_as_its_row_says(client: ApiClient) -> None:
    answer = client.request("POST", "/os-polish/shoes", {"polish": {"wax": "bee", "layers": 2}})
    assert (answer.status_int, answer.json) == (202, {"shine": {"wax": "bee on shoes", "layers": 2}})
    older = client.request("POST", "/os-polish/shoes", {"polish": {"wax": "bee"}}, version="2.1")
    assert older.json == {"shine": {"wax": "bee on shoes"}}


def test_made_up_operation_when_the_body_is_wrong_then_the_answer_names_the_field(client: ApiClient) -> None:
    answer = client.request("POST", "/os-polish/shoes", {"polish": {"wax": "ear"}})
    assert answer.status_int == 400 and "wax" in answer.json["badRequest"]["message"]


def test_made_up_operation_when_its_rule_says_no_then_forbidden(client: ApiClient) -> None:
    assert client.request("POST", "/os-polish/shoes", {"polish": {"wax": "bee"}}, token=DEMO).status_int == 403
