"""The API over a fake conductor, through the RPC codec: ``client = ApiClient(); client.get("/servers")``."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import webob
from oslo_config import cfg

from nova.api import app
from nova.api.extras import CORE, Extras
from nova.conf import api as api_section
from nova.conf import floating, network, osapi, wsgi
from nova.policies import Policy
from nova.rpc.contracts.cert import CertRPC
from tests.fakes.conductor import FakeConductor
from tests.fakes.consoles import FakeConsoles
from tests.fakes.contract import ContractFake

ADMIN, DEMO, READER = "admin:admin", "demo:demo", "reader:demo"


def configuration(use_neutron: bool = True, **api: Any) -> cfg.ConfigOpts:
    """Return a configuration with ``[api]`` values and without files, for Neutron or nova-network."""
    conf = cfg.ConfigOpts()
    conf.register_opts(osapi.OPTS)
    conf.register_opts(api_section.OPTS, group=api_section.GROUP)
    conf.register_opts(network.OPTS)
    conf.register_opts(floating.OPTS)
    conf.register_opts(wsgi.OPTS, group=wsgi.GROUP)
    conf([], project="nova", default_config_files=[], default_config_dirs=[])
    conf.set_override("use_neutron", use_neutron)
    for name, value in {"auth_strategy": "noauth2", **api}.items():
        conf.set_override(name, value, group="api")
    return conf


@functools.cache
def usual() -> tuple[cfg.ConfigOpts, Policy]:
    """Return the default configuration of clients, and its policy."""
    conf = configuration()
    return conf, Policy(conf)


class ApiClient:
    """Client that sends ``token`` (noauth2: USER:PROJECT) and ``version``; paths are below ``prefix`` (/v2.1)."""

    extras: Extras = CORE

    def __init__(self, conductor: Any = None, conf: cfg.ConfigOpts | None = None, token: str | None = DEMO,
                 version: str | None = None) -> None:
        self.conductor = conductor or FakeConductor()
        self.consoles = FakeConsoles()
        options, policy = (conf, None) if conf else usual()
        self.certs = ContractFake(CertRPC)
        self.application = app.from_conf(self.conductor.client(), self.consoles.client(), self.certs.client(), options,
                                         policy, self.extras)
        self.token, self.version, self.prefix = token, version, "/v2.1"

    def request(self, method: str, path: str, body: Any = None, *, token: str | None = "", version: str | None = "",
                headers: dict[str, str] | None = None, raw: bytes | None = None) -> webob.Response:
        request = webob.Request.blank(self.prefix + path, method=method)
        token = self.token if token == "" else token
        version = self.version if version == "" else version
        if token is not None:
            request.headers["X-Auth-Token"] = token
        if version is not None:
            request.headers["OpenStack-API-Version"] = f"compute {version}"
        if body is not None or raw is not None:
            request.body = raw if raw is not None else msgspec.json.encode(body)
            request.content_type = "application/json"
        request.headers.update(headers or {})
        return request.get_response(self.application)

    def get(self, path: str, **options: Any) -> webob.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any, **options: Any) -> webob.Response:
        return self.request("POST", path, body, **options)

    def put(self, path: str, body: Any, **options: Any) -> webob.Response:
        return self.request("PUT", path, body, **options)

    def delete(self, path: str, **options: Any) -> webob.Response:
        return self.request("DELETE", path, **options)
