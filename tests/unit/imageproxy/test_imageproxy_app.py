"""The image proxy over real sockets, between a host's client and an image service in small."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import logging
import os
import re
import socket
import threading
import time
from typing import Any

import pytest
import requests

from nova import errors
from nova.model.image.image_tickets import (
    READ,
    WRITE,
    ImageTicket,
    ProvenRequest,
    data_path,
    host_key,
    proven_headers,
    record_path,
)
from tests.fakes.glance import FakeGlance
from tests.fakes.image_proxies import KEY, OTHER_KEY, SECRET, RunningProxy, glance_at, ticket

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

MIB = 1 << 20


def ask(proxy: RunningProxy, given: ImageTicket, method: str = "GET", data: bool = True, image_id: str = "",
        **more: Any) -> requests.Response:
    """A request as a host would make it, or not quite."""
    path = (data_path if data else record_path)(image_id or given.image_id)
    body, wanted = more.get("body"), more.get("range", "")
    length = str(len(body)) if body is not None else "0" if method == WRITE else ""
    headers = proven_headers(given, host_key(more.get("secret", SECRET), given.id),
                             ProvenRequest(method, path, wanted, length, str(int(time.time()))))
    return requests.request(method, proxy.url + path, data=body, timeout=5, stream=more.get("stream", False),
                            headers={**headers, **({"Range": wanted} if wanted else {}), **more.get("headers", {})})


def queued(glance: FakeGlance, **members: Any) -> str:
    return glance.add(**{"status": "queued", "size": None, **members})


def test_record_then_it_is_all_that_the_image_service_says(glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = glance.add(b"data", disk_format="qcow2", kernel_id="k1")
    there = proxy.client(image_id).show(image_id)
    assert there == glance_at(glance.url).show(image_id)
    assert (there.kernel_id, there.size_bytes, there.os_hash_algo) == ("k1", 4, "sha512")


def test_read_then_the_data_come_whole_or_in_part(glance: FakeGlance, proxy: RunningProxy) -> None:
    data = os.urandom(2 * MIB + 7)
    given = ticket(glance.add(data), READ)
    whole, part = ask(proxy, given), ask(proxy, given, range=f"bytes={MIB}-")
    assert (whole.status_code, whole.content, whole.headers["Content-Length"]) == (200, data, str(len(data)))
    assert (part.status_code, part.content) == (206, data[MIB:])
    assert part.headers["Content-Range"] == f"bytes {MIB}-{len(data) - 1}/{len(data)}"


def test_read_when_the_image_service_has_no_ranges_then_all_of_it_comes(glance: FakeGlance, proxy: RunningProxy,
                                                                        ) -> None:
    glance.knobs.no_ranges = True
    answer = ask(proxy, ticket(glance.add(b"0123456789")), range="bytes=4-")
    assert (answer.status_code, answer.content) == (200, b"0123456789") and "Content-Range" not in answer.headers


@pytest.mark.parametrize("wanted", ["bytes=10-", "bytes=7-5", "bytes=-5", "lines=1-", "bytes=0-1,3-4",
                                    "bytes=" + "9" * 30 + "-"])
def test_read_when_nothing_of_the_image_is_in_the_range_then_416(glance: FakeGlance, proxy: RunningProxy, wanted: str,
                                                                 ) -> None:
    answer = ask(proxy, ticket(glance.add(b"0123456789")), range=wanted)
    assert (answer.status_code, answer.json()["code"]) == (416, "image.proxy_range")
    assert not glance.downloads()


def test_write_then_the_image_has_the_data(glance: FakeGlance, proxy: RunningProxy) -> None:
    data, image_id = os.urandom(3 * MIB + 1), queued(glance)
    answer = ask(proxy, ticket(image_id, WRITE), WRITE, body=data)
    assert answer.status_code == 204 and glance.data[image_id] == data
    assert proxy.client(image_id).show(image_id).status == "active"
    again = ask(proxy, ticket(image_id, WRITE), WRITE, body=data)
    assert (again.status_code, again.json()["kind"]) == (409, "conflict")


REFUSALS: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "of another host": ({}, {"secret": "another host's secret, long enough too"}, 401),
    "of another cloud": ({"key": OTHER_KEY}, {}, 401),
    "for another image": ({}, {"image_id": "another"}, 403),
    "to read, used to write": ({}, {"method": WRITE, "body": b"x"}, 403),
    "to write, used to read": ({"direction": WRITE}, {}, 403),
    "expired": ({"lifetime_s": -5}, {}, 410),
    "with another method": ({}, {"method": "DELETE"}, 405),
    "to change the record": ({}, {"method": WRITE, "data": False, "body": b"{}"}, 405),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_request_when_its_ticket_is_not_good_for_it_then_it_is_refused(glance: FakeGlance, proxy: RunningProxy,
                                                                       case: str) -> None:
    made, asked, status = REFUSALS[case]
    answer = ask(proxy, ticket(glance.add(b"data"), **made), **asked)
    assert answer.status_code == status and set(answer.json()) == {"kind", "code", "message"}
    assert not glance.requests


@pytest.mark.parametrize("path", ["/", "/v1/images", "/v2/images/x/file", "/v1/images/\xff"])
def test_request_when_the_path_is_none_of_ours_then_404(proxy: RunningProxy, path: str) -> None:
    connection = http.client.HTTPConnection(proxy.url.removeprefix("http://"), timeout=5)
    connection.request("GET", requests.utils.quote(path.encode("latin-1")))
    assert connection.getresponse().status == 404


def test_request_without_a_ticket_then_401(glance: FakeGlance, proxy: RunningProxy) -> None:
    assert requests.get(proxy.url + data_path(glance.add(b"x")), timeout=5).status_code == 401
    assert requests.get(proxy.url + "/healthcheck", timeout=5).text == "OK\n"


def test_request_when_the_image_is_gone_then_404_names_it(proxy: RunningProxy) -> None:
    answer = ask(proxy, ticket("nope"))
    assert answer.status_code == 404 and "Image nope could not be found" in answer.json()["message"]


def test_request_when_the_image_service_is_down_then_503_names_it(glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = glance.add(b"x")
    glance.go_away()
    answer = ask(proxy, ticket(image_id))
    assert answer.status_code == 503 and answer.headers["Retry-After"]
    assert "The image service does not answer" in answer.json()["message"]


def test_write_without_a_length_then_it_is_not_taken_whole(glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = queued(glance)
    answer = ask(proxy, ticket(image_id, WRITE), WRITE, body=None, headers={"Transfer-Encoding": "chunked"})
    assert 400 <= answer.status_code < 500 and glance.images[image_id]["status"] == "queued"


def test_read_when_no_slot_is_free_then_503_and_with_one_it_goes_on(glance: FakeGlance) -> None:
    image_id = glance.add(bytes(8 * MIB))
    with RunningProxy(glance_at(glance.url), slots=1) as proxy:
        first = ask(proxy, ticket(image_id), stream=True)
        busy = ask(proxy, ticket(image_id))
        assert (busy.status_code, busy.json()["code"]) == (503, "image.proxy_busy")
        assert ask(proxy, ticket(image_id), data=False).status_code == 200  # a record needs no slot
        assert len(first.content) == 8 * MIB
        assert len(_patient(lambda: ask(proxy, ticket(image_id))).content) == 8 * MIB


def _patient(call: Any) -> requests.Response:
    until = time.monotonic() + 5
    while True:
        answer: requests.Response = call()
        if answer.ok or time.monotonic() > until:
            return answer


def test_read_when_the_host_takes_nothing_then_it_is_hung_up_on_and_its_slot_is_free(glance: FakeGlance) -> None:
    """And what comes of the image service meanwhile waits there: memory does not grow with the image."""
    image_id = glance.add(bytes(64 * MIB))
    with RunningProxy(glance_at(glance.url), slots=1, idle_s=0.5) as proxy:
        slow = ask(proxy, ticket(image_id), stream=True)
        assert _patient(lambda: ask(proxy, ticket(image_id), range="bytes=0-9")).content == bytes(10)
        with pytest.raises(requests.RequestException):
            assert len(slow.content) < 64 * MIB


def test_write_when_the_host_goes_away_then_the_image_has_no_data(glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = queued(glance)
    given = ticket(image_id, WRITE)
    asked = ProvenRequest(WRITE, data_path(image_id), "", "1000000", str(int(time.time())))
    headers = proven_headers(given, host_key(SECRET, given.id), asked)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    host, port = proxy.url.removeprefix("http://").split(":")
    with contextlib.closing(socket.create_connection((host, int(port)))) as sock:
        sock.sendall(f"PUT {data_path(image_id)} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n{lines}\r\n".encode()
                     + bytes(1000))
    time.sleep(0.3)
    assert glance.images[image_id]["status"] == "queued"
    assert ask(proxy, given, WRITE, body=b"again").status_code == 204


def test_log_then_it_names_host_image_and_request_and_holds_no_ticket(glance: FakeGlance, caplog: Any) -> None:
    image_id = glance.add(b"data")
    given, wrong = ticket(image_id), ticket(image_id, key=OTHER_KEY)
    caplog.set_level(logging.DEBUG)
    with RunningProxy(glance_at(glance.url)) as proxy:
        ask(proxy, given)
        ask(proxy, wrong)
        time.sleep(0.1)
    said = "\n".join(f"{record.getMessage()} {getattr(record, 'server', '')}" for record in caplog.records
                     if record.name.startswith(("nova", "keystoneauth")))
    assert re.search(rf"GET image {image_id} for host host1: 4 bytes in .* a-server", said)
    for one in (given, wrong):
        assert one.sealed not in said and one.sealed[20:60] not in said
    assert KEY not in said and SECRET not in said


# --- through the host's client

def test_download_that_breaks_at_the_image_service_goes_on_where_it_was(glance: FakeGlance, proxy: RunningProxy,
                                                                        tmp_path: Any) -> None:
    data = os.urandom(5 * MIB)
    image_id = glance.add(data)
    client = proxy.client(image_id)
    glance.knobs.break_data_after = [2 * MIB + 5, MIB]
    assert client.download(client.show(image_id), str(tmp_path / "image")) == len(data)
    assert (tmp_path / "image").read_bytes() == data
    ranges = [headers.get("Range") for _m, path, headers in glance.requests if path.endswith("/file")]
    assert ranges[0] is None and all(ranges[1:]) and len(ranges) == 3


def test_download_when_its_ticket_expires_on_the_way_then_the_stream_is_not_cut(glance: FakeGlance, proxy: RunningProxy,
                                                                                ) -> None:
    image_id = glance.add(bytes(32 * MIB))
    answer = ask(proxy, ticket(image_id, lifetime_s=1), stream=True)
    time.sleep(2.1)
    assert len(answer.content) == 32 * MIB


def test_download_of_damaged_data_is_refused(glance: FakeGlance, proxy: RunningProxy, tmp_path: Any) -> None:
    image_id = glance.add(bytes(1000))
    client = proxy.client(image_id)
    glance.knobs.flip_a_byte = True
    with pytest.raises(errors.image.Corrupt):
        client.download(client.show(image_id), str(tmp_path / "image"))


def test_download_when_all_slots_are_taken_for_a_while_then_it_waits(glance: FakeGlance, tmp_path: Any) -> None:
    image_id = glance.add(bytes(8 * MIB))
    with RunningProxy(glance_at(glance.url), slots=1) as proxy:
        holder = ask(proxy, ticket(image_id), stream=True)
        threading.Timer(0.6, holder.close).start()
        client = proxy.client(image_id)  # three tries in a row would be over long before
        assert client.download(client.show(image_id), str(tmp_path / "image")) == 8 * MIB


@pytest.mark.parametrize("by_path", [True, False])
def test_upload_sends_all_of_the_file_and_again_changes_nothing(glance: FakeGlance, proxy: RunningProxy, tmp_path: Any,
                                                                by_path: bool) -> None:
    data, image_id = os.urandom(3 * MIB), queued(glance)
    (tmp_path / "disk").write_bytes(data)
    client = proxy.client(image_id)
    for _ in range(2):
        if by_path:
            assert client.upload(image_id, str(tmp_path / "disk")) == len(data)
        else:
            with open(tmp_path / "disk", "rb") as file:
                file.seek(10)
                assert client.upload(image_id, file) == len(data)
    assert glance.data[image_id] == data
    assert glance.images[image_id]["os_hash_value"] == hashlib.sha512(data).hexdigest()


def test_upload_while_the_image_service_hiccups_sends_it_from_its_beginning(glance: FakeGlance, proxy: RunningProxy,
                                                                            tmp_path: Any) -> None:
    (tmp_path / "disk").write_bytes(data := os.urandom(3 * MIB))
    image_id = queued(glance)
    glance.knobs.fail_next = 2
    proxy.client(image_id).upload(image_id, str(tmp_path / "disk"))
    assert glance.data[image_id] == data


def test_upload_to_an_image_with_other_data_is_a_conflict(glance: FakeGlance, proxy: RunningProxy, tmp_path: Any,
                                                          ) -> None:
    (tmp_path / "disk").write_bytes(bytes(10))
    image_id = glance.add(bytes(11))
    with pytest.raises(errors.Conflict):
        proxy.client(image_id).upload(image_id, str(tmp_path / "disk"))


def test_upload_to_an_image_that_is_gone_names_it(proxy: RunningProxy, tmp_path: Any) -> None:
    (tmp_path / "disk").write_bytes(bytes(10))
    with pytest.raises(errors.NotFound, match="nope"):
        proxy.client("nope").upload("nope", str(tmp_path / "disk"))


def test_show_without_a_ticket_then_the_host_says_what_it_lacks(proxy: RunningProxy) -> None:
    with pytest.raises(errors.image.TicketMissing, match="host1 got no ticket for image x") as refused:
        proxy.client().show("x")
    assert isinstance(refused.value, errors.HostRefused)


def test_show_when_the_proxy_is_away_then_it_is_unavailable_as_the_image_service_was(glance: FakeGlance) -> None:
    image_id = glance.add(b"x")
    with RunningProxy(glance_at(glance.url)) as proxy:
        client = proxy.client(image_id)
    with pytest.raises(errors.Unavailable, match="The image proxy service does not answer"):
        client.show(image_id)


def test_show_when_one_of_two_proxies_is_away_then_the_other_is_asked(glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = glance.add(b"x")
    client = proxy.client()
    client.hold([ticket(image_id, READ, "http://127.0.0.1:9", proxy.url)])
    assert [client.show(image_id).id for _ in range(3)] == [image_id] * 3


def test_show_when_the_host_has_another_secret_then_another_host_is_to_be_tried(glance: FakeGlance, proxy: RunningProxy,
                                                                                ) -> None:
    image_id = glance.add(b"x")
    with pytest.raises(errors.HostRefused, match="has a different secret") as refused:
        proxy.client(image_id, secret="not what it registered with").show(image_id)
    assert refused.value.code == "image.ticket_not_proven"


def test_show_when_the_ticket_has_expired_then_it_is_unavailable_at_once(glance: FakeGlance, proxy: RunningProxy,
                                                                         ) -> None:
    image_id = glance.add(b"x")
    client = proxy.client()
    client.hold([ticket(image_id, READ, proxy.url, lifetime_s=1)])
    time.sleep(2.1)
    with pytest.raises(errors.Unavailable, match="has expired"):
        client.show(image_id)


def test_hold_when_a_newer_ticket_comes_then_it_takes_the_place(glance: FakeGlance, proxy: RunningProxy) -> None:
    image_id = glance.add(b"x")
    client = proxy.client()
    newer = ticket(image_id, READ, proxy.url)
    client.hold([newer, ticket(image_id, READ, "http://127.0.0.1:9", lifetime_s=60)])
    assert client.show(image_id).id == image_id
