"""Keystone's token check in front of the API."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from keystonemiddleware import auth_token
from oslo_config import cfg

from nova import errors
from nova.model.base import Json

LOG = logging.getLogger(__name__)


LONGEST_TOKEN = 8192  # what servers, Keystone's too, take as one header; no token of theirs is near it

TOKENS = ("HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN", "HTTP_X_SERVICE_TOKEN")  # those that the library looks at


class TokenCheck:
    """keystonemiddleware's auth_token, set up by ``[keystone_authtoken]``; its 503 becomes one of ours."""

    def __init__(self, application: Callable[..., object], conf: cfg.ConfigOpts) -> None:
        self.checker = auth_token.AuthProtocol(application, {"oslo_config_config": conf, "oslo_config_project": "nova"})

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        held: list[tuple[Any, ...]] = []
        if any(len(environ.get(name, "")) > LONGEST_TOKEN for name in TOKENS):  # none of Keystone's: 401, as for others
            for name in TOKENS:
                environ.pop(name, None)

        def start(*answer: Json) -> Json:
            if "nova.context" not in environ and answer[0].startswith("503"):
                held.append(answer)
                return lambda data: None
            return start_response(*answer)

        content = self.checker(environ, start)
        if held:
            LOG.warning("Keystone does not answer: a request was refused with 503")
            raise errors.api.IdentityAway
        return content
