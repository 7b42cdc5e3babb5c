"""The metadata service at 100 requests a second: what remembering spares, and what a busy guest costs the others.

    bin/test bench-metadata [--seconds 5] [--rate 100]

One worker process with a real HTTP server; the conductor is one that takes as long as is said for each call (its
values go through the contract's codec). Guests ask from addresses of their own, as with nova-network. Times compare
within a run.
"""

from __future__ import annotations

import argparse
import base64
import concurrent.futures
import http.client
import multiprocessing
import sys
import threading
import time
from typing import Any

import msgspec

from nova import http_server
from nova.metadata.app import MetadataApp
from nova.metadata.options import MetadataOptions
from nova.model.guest.guests import GuestFacts, GuestQuery
from nova.model.network.networks import FixedAddress, Interface
from tests.bench.meters import percentile
from tests.fakes.conductor_host import FakeConductorHost

CALL_S = 0.005  # what a conductor's answer over a broker takes on a quiet machine
PATHS = ("/openstack/latest/meta_data.json", "/openstack/latest/network_data.json", "/latest/meta-data/instance-id",
         "/latest/user-data")
BUSY, CLIENTS = 60, 16  # threads of the busy guest; threads that the others share
FACTS = GuestFacts(
    uuid="6f70656e-7374-4163-8b00-000000000001", id=26, name="web", hostname="web", project_id="p1",
    key_name="k", public_key="ssh-ed25519 AAAA me", user_data=base64.b64encode(b"#!/bin/sh\n" * 400).decode(),
    interfaces=(Interface(id="v", mac="fa:16:3e:00:00:01", network_id="n", label="l", dhcp_server="10.0.0.1",
                          addresses=(FixedAddress(address="10.0.0.5"),)),))


class Conductor(FakeConductorHost):
    """Knows every address."""

    def guest_facts(self, host: str, query: GuestQuery) -> GuestFacts:
        time.sleep(CALL_S)
        return msgspec.structs.replace(FACTS, name=str(query.address))


def serve(sock: Any) -> None:
    app = MetadataApp(Conductor().client("meta"), "meta", MetadataOptions(forwarded_for=True))
    http_server.serve_threads(sock, app, 200)


def get(connection: http.client.HTTPConnection, address: str, path: str) -> tuple[int, float]:
    """(status, ms)"""
    started = time.perf_counter()
    connection.request("GET", path, headers={"X-Forwarded-For": address})
    answer = connection.getresponse()
    answer.read()
    return answer.status, 1000 * (time.perf_counter() - started)


def paced(port: int, rate: int, seconds: float, addresses: Any) -> list[float]:
    """Times of ``rate`` requests a second; ``addresses``: number of the request -> who asks."""
    count, started = int(rate * seconds), time.perf_counter()
    kept = threading.local()

    def one(number: int) -> float:
        time.sleep(max(0.0, started + number / rate - time.perf_counter()))
        if not hasattr(kept, "connection"):
            kept.connection = http.client.HTTPConnection("127.0.0.1", port)
        status, took = get(kept.connection, addresses(number), PATHS[number % len(PATHS)])
        assert status == 200, status
        return took
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        return list(pool.map(one, range(count)))


def storm(port: int, stop: Any, answers: Any) -> None:
    """The busy guest, a process of its own: each thread asks as fast as it is answered, for what is never
    remembered. ``told``: how often it was answered, and how often turned away."""
    def ask() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while not stop.is_set():
            status, _took = get(connection, "10.9.9.9", "/openstack/latest/password")
            with answers.get_lock():
                answers[status == 429] += 1
    threads = [threading.Thread(target=ask) for _ in range(BUSY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def beside_a_storm(port: int, rate: int, seconds: float) -> tuple[list[float], list[int]]:
    stop, answers = multiprocessing.Event(), multiprocessing.Array("l", 2)
    guest = multiprocessing.Process(target=storm, args=(port, stop, answers), daemon=True)
    guest.start()
    try:
        return paced(port, rate, seconds, lambda number: f"10.2.{number // 250}.{number % 250}"), list(answers)
    finally:
        stop.set()
        guest.join()


def row(name: str, times: list[float], first: float) -> float:
    median = percentile(times, 0.5)
    sys.stdout.write(f"{name:<44}{median:>8.1f}{percentile(times, 0.95):>8.1f}{median / (first or median):>8.1f}\n")
    return median


def main() -> None:
    parser = argparse.ArgumentParser(prog="bin/test bench-metadata", description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rate", type=int, default=100)
    given = parser.parse_args()
    sock = http_server.bind("127.0.0.1", 0)
    server = multiprocessing.Process(target=serve, args=(sock,), daemon=True)
    server.start()
    try:
        port = sock.getsockname()[1]
        sys.stdout.write(f"{given.rate} requests a second; a call of the conductor takes {1000 * CALL_S:.0f} ms\n"
                         f"{'':<44}{'p50 ms':>8}{'p95 ms':>8}{'ratio':>8}\n")
        cached = row("ten guests, remembered", paced(port, given.rate, given.seconds, lambda n: f"10.0.0.{n % 10}"), 0)
        row("a new guest each time", paced(port, given.rate, given.seconds,
                                           lambda n: f"10.1.{n // 250}.{n % 250}"), cached)
        times, counts = beside_a_storm(port, given.rate, given.seconds)
        row("the same, beside a guest that asks without end", times, cached)
        sys.stdout.write(f"that guest was answered {counts[0]} times and turned away {counts[1]} times\n")
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
