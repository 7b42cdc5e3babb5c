"""The init process of a room: reaps orphaned processes until it is killed. Run as `python3 -IS roominit.py ROOM`, as
PID 1 of the room."""

import os
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
while True:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    signal.sigtimedwait({signal.SIGCHLD}, 10)
