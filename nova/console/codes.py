"""Close codes of a console's connection: those of WebSockets (RFC 6455, 7.4), and nova's own from 4000 on."""

from __future__ import annotations

NORMAL = 1000
GOING_AWAY = 1001  # the proxy stops
PROTOCOL_ERROR, UNSUPPORTED = 1002, 1003
ABNORMAL = 1006  # never sent: the other side has disconnected without a close message, or does not read
POLICY = 1008  # a limit
TOO_BIG = 1009
BACK_END = 1011  # the guest's end, its host, or the proxy itself
TIMED_OUT = 4000
ELSEWHERE = 4001  # a newer session has the console
REFUSED = 4003  # the token is no longer good

NEVER_SENT = (1004, 1005, ABNORMAL, 1015)  # codes for the absence of a close code
