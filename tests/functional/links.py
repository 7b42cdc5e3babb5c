"""A TCP link that a test can cut: what goes through it ends at once, and what comes is refused, until it is repaired.
Or it hangs: connections stay, and new ones are taken, but nothing goes through."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from urllib.parse import urlsplit

HOST = "127.0.0.1"
CHUNK = 65536


class Link:
    """Listens on a port of its own, and carries each connection to ``port`` of this machine."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.accepted_at: list[float] = []  # by time.monotonic(), of all connections so far
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        self._flows = threading.Event()
        self._flows.set()
        self._listener = self._listen(0)
        self.port = int(self._listener.getsockname()[1])
        self._serve()

    def through(self, url: str) -> str:
        """A database's URL, by way of this link."""
        place = urlsplit(url).netloc
        return url.replace(place, f"{place.rpartition('@')[0]}@{HOST}:{self.port}", 1)

    def cut(self) -> None:
        with self._lock:
            ends, self._ends = [self._listener, *self._ends], set()
        self._flows.set()
        for end in ends:
            _close(end)

    def break_some(self, chance: random.Random, share: float) -> int:
        """Each connection ends with the chance of ``share``, and may be made anew at once; how many ended."""
        with self._lock:
            chosen = [end for end in self._ends if chance.random() < share / 2]  # a connection has two ends
        for end in chosen:
            _close(end)
        return len(chosen)

    def hang(self) -> None:
        self._flows.clear()

    def flow(self) -> None:
        """Carry again, also what was sent meanwhile."""
        self._flows.set()

    def repair(self) -> None:
        self._listener = self._listen(self.port)
        self._serve()

    close = cut

    @staticmethod
    def _listen(port: int) -> socket.socket:
        return socket.create_server((HOST, port), backlog=64)

    def _serve(self) -> None:
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # closed: cut
            while True:
                near, _ = listener.accept()
                self.accepted_at.append(time.monotonic())
                self._flows.wait()
                far = socket.create_connection((HOST, self.target), 10)
                far.settimeout(None)
                with self._lock:
                    if self._listener is not listener or listener.fileno() < 0:
                        _close(near), _close(far)
                        return
                    self._ends |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                self._flows.wait()
                sink.sendall(data)
        with self._lock:
            self._ends -= {source, sink}
        _close(source), _close(sink)


def _close(end: socket.socket) -> None:
    """Also for a thread that waits in it."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
