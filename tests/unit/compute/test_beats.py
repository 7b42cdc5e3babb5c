"""Heartbeats: most are told, some ask."""

from __future__ import annotations

import pytest

from nova import errors
from nova.compute.reports.heartbeat import ASKS_EVERY, Beats
from nova.model.services import Alive


class Conductor:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.away = self.old = False

    def heartbeat(self, host, beat):
        self.calls.append("ask")
        if self.away:
            raise errors.Unavailable("nobody answers")
        return Alive(owes=True)

    def still_here(self, host, beat):
        if self.old:
            raise errors.PeerTooOld("too old")
        self.calls.append("tell")


def test_beat_when_all_is_well_then_every_fourth_asks_and_the_first_one_does():
    conductor, heard = Conductor(), []
    beats = Beats(conductor, "cn1", "nova-compute", heard.append)
    for _ in range(2 * ASKS_EVERY):
        beats()
    assert conductor.calls == ["ask", "tell", "tell", "tell"] * 2 and len(heard) == 2 and heard[0].owes


def test_beat_when_a_question_had_no_answer_then_the_next_one_asks_again():
    conductor, heard = Conductor(), []
    beats = Beats(conductor, "cn1", "nova-compute", heard.append)
    conductor.away = True
    for _ in range(2):
        with pytest.raises(errors.Unavailable):
            beats()
    conductor.away = False
    beats()
    beats()
    assert conductor.calls == ["ask", "ask", "ask", "tell"] and len(heard) == 1


def test_beat_when_a_conductor_is_too_old_to_be_told_then_it_is_asked():
    conductor = Conductor()
    conductor.old = True
    beats = Beats(conductor, "cn1", "nova-compute", lambda alive: None)
    for _ in range(3):
        beats()
    assert conductor.calls == ["ask"] * 3
