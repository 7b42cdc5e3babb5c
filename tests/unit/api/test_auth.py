"""Who asks: noauth2's headers, and what Keystone's token check leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
import webob
from keystoneauth1 import loading
from keystonemiddleware import opts
from oslo_config import cfg

from nova import context
from nova.policies import Policy
from nova.web.auth import KeystoneContext
from tests.fakes.api import ApiClient, configuration


def test_no_token_is_a_plain_401() -> None:
    answer = ApiClient(token=None).get("/flavors")
    assert answer.status_int == 401
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_log_in_names_token_and_endpoint() -> None:
    client = ApiClient(token=None)
    answer = client.get("", headers={"X-Auth-User": "joe", "X-Auth-Key": "k", "X-Auth-Project-Id": "p1"})
    assert answer.status_int == 204
    assert answer.headers["X-Auth-Token"] == "joe:p1"
    assert answer.headers["X-Server-Management-Url"] == "http://localhost/v2.1"


def test_user_and_project_in_headers_are_believed() -> None:
    client = ApiClient(token=None)
    mine = client.conductor.add_server(project_id="p1", user_id="joe")
    headers = {"X-Auth-User": "joe", "X-Auth-Project-Id": "p1"}
    assert client.get(f"/servers/{mine.uuid}", headers=headers).status_int == 200
    assert client.get(f"/servers/{mine.uuid}", headers={**headers, "X-Auth-Project-Id": "p2"}).status_int == 404


def keystone(headers: dict[str, str]) -> tuple[webob.Response, list[context.RequestContext]]:
    seen: list[context.RequestContext] = []

    def inner(environ: dict[str, Any], start_response: Any) -> list[bytes]:
        seen.append(environ["nova.context"])
        assert context.current() is seen[0]
        start_response("200 OK", [])
        return [b""]

    request = webob.Request.blank("/servers", headers=headers)
    request.environ.update({"nova.request_id": "req-1", "nova.global_request_id": None})
    return request.get_response(KeystoneContext(inner, Policy(configuration()))), seen


CONFIRMED = {"X-Identity-Status": "Confirmed", "X-User-Id": "u1", "X-Project-Id": "p1", "X-Auth-Token": "secret",
             "X-User-Name": "joe", "X-Project-Name": "proj"}


@pytest.mark.parametrize(("roles", "admin"), [("admin,member,reader", True), ("member, reader", False), ("", False)])
def test_confirmed_token_makes_the_context(roles: str, admin: bool) -> None:
    answer, seen = keystone({**CONFIRMED, "X-Roles": roles})
    assert answer.status_int == 200
    assert (seen[0].user_id, seen[0].project_id, seen[0].is_admin) == ("u1", "p1", admin)
    assert seen[0].roles == tuple(role.strip() for role in roles.split(",") if role)
    assert "secret" not in repr(seen[0])


def test_unconfirmed_token_is_401() -> None:
    answer, seen = keystone({**CONFIRMED, "X-Identity-Status": "Invalid"})
    assert answer.status_int == 401
    assert seen == []


def test_keystone_down_is_503_naming_it() -> None:
    answer = ApiClient(conf=keystone_conf(), token="gAAAA").get("/flavors")
    assert answer.status_int == 503
    assert "Keystone" in answer.json["serviceUnavailable"]["message"]


def test_no_token_behind_keystone_is_401_even_when_it_is_down() -> None:
    assert ApiClient(conf=keystone_conf(), token=None).get("/flavors").status_int == 401


@pytest.mark.parametrize("name", ["X-Auth-Token", "X-Service-Token"])
def test_token_that_is_too_long_for_keystone_is_401_and_keystone_is_not_asked(name: str) -> None:
    client = ApiClient(conf=keystone_conf(), token="gAAAA")
    answer = client.get("/flavors", headers={name: "x" * 9000})
    assert answer.status_int == 401 and "Keystone" in answer.headers["WWW-Authenticate"]


def keystone_conf() -> cfg.ConfigOpts:
    """Keystone at a port where nobody listens."""
    conf = configuration(auth_strategy="keystone")
    for group, options in opts.list_auth_token_opts():
        conf.register_opts(options, group=group)
    loading.register_auth_conf_options(conf, "keystone_authtoken")
    conf.register_opts(loading.get_auth_plugin_conf_options(loading.get_plugin_loader("password")),
                       group="keystone_authtoken")
    for name, value in {"www_authenticate_uri": "http://127.0.0.1:1", "auth_type": "password", "username": "nova",
                        "http_connect_timeout": 1, "http_request_max_retries": 0, "auth_url": "http://127.0.0.1:1",
                        "password": "x", "project_name": "service", "user_domain_id": "default",
                        "project_domain_id": "default"}.items():
        conf.set_override(name, value, group="keystone_authtoken")
    return conf
