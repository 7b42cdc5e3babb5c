"""The dispatcher of all APIs on one port, while parts of the cloud start."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from wsgiref.types import StartResponse, WSGIEnvironment

import webob

from nova.devel.nova_all import frontend
from nova.devel.nova_all.frontend import ApiFrontend, StartingApplication


def served(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{environ['SCRIPT_NAME']} {environ['PATH_INFO']}".encode()]


def test_request_when_its_application_still_starts_then_answered_once_it_serves() -> None:
    front, starting = ApiFrontend(), StartingApplication()
    front.below["services"] = starting
    answers: list[webob.Response] = []
    request = webob.Request.blank("/services/Cloud")
    waiting = threading.Thread(target=lambda: answers.append(request.get_response(front)))
    waiting.start()
    waiting.join(0.05)
    assert answers == []
    starting.serve(served)
    waiting.join(10)
    assert [(one.status_int, one.text) for one in answers] == [(200, "/services /Cloud")]


def test_request_when_its_application_does_not_start_then_503(monkeypatch) -> None:
    monkeypatch.setattr(frontend, "START_S", 0.01)
    answer = webob.Request.blank("/").get_response(StartingApplication())
    assert (answer.status_int, answer.headers["Retry-After"]) == (503, "1")


def test_request_when_the_cloud_still_starts_then_503() -> None:
    answer = webob.Request.blank("/servers").get_response(ApiFrontend())
    assert (answer.status_int, answer.headers["Retry-After"]) == (503, "1")
