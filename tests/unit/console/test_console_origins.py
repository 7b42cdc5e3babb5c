"""Origins: which pages may open a console, and that asking changes nothing."""

from __future__ import annotations

import pytest

from nova.console import origins

BASE = "http://cloud.example:6080/vnc_auto.html"


def asked(origin: str | None, host: str = "cloud.example:6080", base: str = BASE, allowed: tuple[str, ...] = (),
          forwarded: str | None = None) -> str | None:
    environ = {"HTTP_HOST": host}
    if origin is not None:
        environ["HTTP_ORIGIN"] = origin
    if forwarded is not None:
        environ["HTTP_X_FORWARDED_PROTO"] = forwarded
    return origins.refusal(environ, base, allowed)


@pytest.mark.parametrize("how", [
    {"origin": None}, {"origin": "http://cloud.example:6080"}, {"origin": "http://CLOUD.example"},
    {"origin": "http://cloud.example:1"},  # ports are no part of it
    {"origin": "http://[2001:db8::1]:6080", "host": "[2001:db8::1]:6080"},
    {"origin": "http://[2001:db8::1]", "host": "proxy", "allowed": ("2001:db8::1",)},
    {"origin": "http://[2001:db8::1]", "host": "proxy", "allowed": ("[2001:db8::1]",)},
    {"origin": "http://dashboard.example", "allowed": ("other.example", " Dashboard.example ")},
    {"origin": "http://cloud.example", "base": "ws://cloud.example:6083/"},
    {"origin": "https://cloud.example", "base": "wss://cloud.example:6083/"},
    {"origin": "https://cloud.example", "base": "https://cloud.example/", "forwarded": "http"},
])
def test_page_of_the_same_or_an_allowed_site_may(how: dict[str, object]) -> None:
    assert asked(**how) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("how", [
    {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": ""}, {"origin": "http://"}, {"origin": "//x"},
    {"origin": "cloud.example"}, {"origin": "http://["}, {"origin": "http://cloud.example.evil.example"},
    {"origin": "http://evil.example", "allowed": ("cloud.example",)},
    {"origin": "http://evil.example", "host": "cloud.example,evil.example"},
    {"origin": "http://cloud.example", "host": ""}, {"origin": "http://[", "host": "["},
    {"origin": "https://cloud.example"}, {"origin": "http://cloud.example", "base": "wss://cloud.example/"},
    {"origin": "http://cloud.example", "base": "https://cloud.example/", "forwarded": "https"},  # anybody can say so
    {"origin": "file://cloud.example"}, {"origin": "http://cloud.example", "base": ""},
])
def test_page_of_another_site_or_scheme_may_not(how: dict[str, object]) -> None:
    words = asked(**how)  # type: ignore[arg-type]
    assert words and words.endswith(".")


def test_hosts_of_earlier_requests_allow_nothing() -> None:
    allowed = ["dashboard.example"]
    for number in range(50):
        assert origins.refusal({"HTTP_HOST": f"evil{number}.example", "HTTP_ORIGIN": f"http://evil{number}.example"},
                               BASE, allowed) is None, "its own page"
    assert allowed == ["dashboard.example"]
    assert asked("http://evil1.example", allowed=tuple(allowed))
