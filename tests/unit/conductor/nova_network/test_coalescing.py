"""At most one call a host; what comes meanwhile is one call after it."""

from __future__ import annotations

import threading

from nova.conductor.nova_network.coalescing import Batch, Coalescer

TIMEOUT_S = 10.0


class Words(Batch):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []


class Host:
    """Calls wait at the gate until it is open; ``calls``: (host, what it was told)."""

    def __init__(self) -> None:
        self.gate, self.entered = threading.Event(), threading.Event()
        self.calls: list[tuple[str, list[str]]] = []
        self.queues = Coalescer(Words, self._call, "words")

    def say(self, word: str, host: str = "a") -> tuple[Words, bool]:
        return self.queues.join(host, lambda batch: batch.words.append(word))

    def _call(self, host: str, batch: Words) -> None:
        self.calls.append((host, list(batch.words)))
        self.entered.set()
        if host == "a":
            self.gate.wait(TIMEOUT_S)
        if "bad" in batch.words:
            raise RuntimeError("nobody foresaw it")


def test_join_when_a_call_is_under_way_then_all_that_comes_is_in_the_next():
    host = Host()
    first, begins = host.say("one")
    assert begins and host.entered.wait(TIMEOUT_S)
    second, third = host.say("two"), host.say("three")
    assert second[0] is third[0] is not first and not second[1] and not third[1] and host.queues.waiting("a")
    host.gate.set()
    assert second[0].done.wait(TIMEOUT_S)
    assert host.calls == [("a", ["one"]), ("a", ["two", "three"])] and not host.queues.waiting("a")


def test_join_when_a_host_hangs_then_the_others_are_told():
    host = Host()
    host.say("one")
    other, begins = host.say("one", "b")
    assert begins and other.done.wait(TIMEOUT_S)
    host.gate.set()


def test_call_when_it_fails_unforeseen_then_its_batch_ends_and_the_next_goes(caplog):
    host = Host()
    bad, _begins = host.say("bad")
    assert host.entered.wait(TIMEOUT_S)
    good, _begins = host.say("good")
    host.gate.set()
    assert bad.done.wait(TIMEOUT_S) and good.done.wait(TIMEOUT_S)
    assert [words for _host, words in host.calls] == [["bad"], ["good"]] and "words of a failed" in caplog.text


def test_join_when_all_was_told_then_the_next_begins_at_once():
    host = Host()
    host.gate.set()
    first, _begins = host.say("one")
    assert first.done.wait(TIMEOUT_S)
    for _ in range(200):  # the thread that told it ends a moment later
        again, begins = host.say("two")
        assert again.done.wait(TIMEOUT_S)
        if begins:
            return
    raise AssertionError("no call began at once")
