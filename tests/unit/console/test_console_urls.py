"""Access addresses: the operator's base is kept as it was written, and the token stands where the proxy looks."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nova.console import tokens, urls
from nova.model.guest.consoles import ConsoleType, token_hash

T = "5b2c8a0e-8d5c-4f0e-9a55-0b7f6f4a6c10"
NOVNC, SERIAL = ConsoleType.NOVNC, ConsoleType.SERIAL


@pytest.mark.parametrize(("type", "base", "url"), [
    (NOVNC, "http://h:6080/vnc_auto.html", f"http://h:6080/vnc_auto.html?path=%3Ftoken%3D{T}"),
    (NOVNC, "http://h/vnc_lite.html?path=websockify", f"http://h/vnc_lite.html?path=websockify%3Ftoken%3D{T}"),
    (NOVNC, "http://h/vnc.html?autoconnect=true&path=a%2Fb%3Fx%3D1&resize=scale",
     f"http://h/vnc.html?autoconnect=true&resize=scale&path=a%2Fb%3Fx%3D1%26token%3D{T}"),
    (NOVNC, "https://[2001:db8::1]:6080/vnc.html", f"https://[2001:db8::1]:6080/vnc.html?path=%3Ftoken%3D{T}"),
    (SERIAL, "ws://127.0.0.1:6083/", f"ws://127.0.0.1:6083/?token={T}"),
    (SERIAL, "wss://[::1]:6083/?a=b+c", f"wss://[::1]:6083/?a=b+c&token={T}"),
    (SERIAL, "http://h/?token=mine&a", f"http://h/?a&token={T}"),
    (ConsoleType.WEBMKS, "http://h/mks.html", f"http://h/mks.html?token={T}"),
    (ConsoleType.SPICE_HTML5, "http://h/spice_auto.html?", f"http://h/spice_auto.html?token={T}"),
    (NOVNC, "http://h/vnc.html?a=1#end", f"http://h/vnc.html?a=1&path=%3Ftoken%3D{T}#end")])
def test_access_url_of_a_base_then_its_form(type: ConsoleType, base: str, url: str) -> None:
    assert urls.access_url(type, base, T) == url


NAMES = st.text("abcdefghijklmnopqrstuvwxyz_%20é&=?#/+ ", min_size=1, max_size=6)
PAIRS = st.lists(st.tuples(st.sampled_from(["a", "b", "autoconnect", "resize", "title"]), NAMES), max_size=4)
HOSTS = st.sampled_from(["127.0.0.1:6080", "[::1]:6080", "[fe80::1%25eth0]", "console.example.org", "h:1"])
TYPES = st.sampled_from([type for type in ConsoleType if type is not ConsoleType.UNKNOWN])


@settings(max_examples=150, deadline=None)
@given(TYPES, st.sampled_from(["http", "https", "ws", "wss"]), HOSTS, PAIRS, st.none() | NAMES)
def test_access_url_of_any_base_then_all_of_it_is_kept_and_the_token_is_found(
        type: ConsoleType, scheme: str, host: str, pairs: list[tuple[str, str]], path: str | None) -> None:
    from urllib.parse import urlencode

    own = [*pairs, *([("path", path)] if path is not None else [])]
    base = f"{scheme}://{host}/page.html" + (f"?{urlencode(own)}" if own else "")
    made = urlsplit(urls.access_url(type, base, T))
    assert (made.scheme, made.netloc, made.path, made.fragment) == (scheme, host, "/page.html", "")
    found = parse_qsl(made.query, keep_blank_values=True)
    if type is ConsoleType.NOVNC:
        [handed_on] = [value for name, value in found if name == "path"]
        assert handed_on.startswith(path or "")
        assert dict(parse_qsl(handed_on.partition("?")[2]))["token"] == T
        assert [pair for pair in found if pair[0] != "path"] == pairs
    else:
        assert found == [*own, ("token", T)]


def test_token_when_made_then_nobody_guesses_it_and_its_hash_is_short_in_logs() -> None:
    made = {tokens.new() for _ in range(100)}
    assert len(made) == 100 and all(len(one) == 36 for one in made)
    hashed = token_hash(T)
    assert len(hashed) == 64 and tokens.short(hashed) == hashed[:8]
