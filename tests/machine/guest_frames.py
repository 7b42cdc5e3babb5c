"""Run inside a guest's network namespace: sends frames, prints those that come, and tries to connect.

``send DEVICE HEX...``; ``listen DEVICE``: a line of hex a frame, until it is ended; ``serve PORT``; ``try ADDRESS
PORT``: a line ``yes`` or ``no`` a try, until it is ended.
"""

from __future__ import annotations

import socket
import sys
import time

EVERYTHING = 0x0003  # ETH_P_ALL
TIMEOUT_S, PAUSE_S = 0.25, 0.02


def raw(device: str) -> socket.socket:
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERYTHING))
    found.bind((device, 0))
    return found


def send(device: str, *frames: str) -> None:
    with raw(device) as out:
        for frame in frames:
            out.send(bytes.fromhex(frame))


def listen(device: str) -> None:
    with raw(device) as come:
        say("ready")
        while True:
            frame, origin = come.recvfrom(2000)
            if origin[2] != socket.PACKET_OUTGOING:
                say(frame.hex())


def serve(port: str) -> None:
    with socket.create_server(("", int(port))) as server:
        say("ready")
        while True:
            server.accept()[0].close()


def attempts(address: str, port: str) -> None:
    say("ready")
    while True:
        try:
            socket.create_connection((address, int(port)), TIMEOUT_S).close()
            say("yes")
        except OSError:
            say("no")
        time.sleep(PAUSE_S)


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    {"send": send, "listen": listen, "serve": serve, "try": attempts}[sys.argv[1]](*sys.argv[2:])
