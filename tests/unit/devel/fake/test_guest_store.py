"""Records of the fake hypervisor's guests: whole at any instant, on one host at a time."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from nova.devel.fake.store import FakeGuest, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "guests")
    made.load()
    made.keep(FakeGuest(uuid="one", name="before", defined=True))
    return made


def saved(path: Path) -> FakeGuest:
    return msgspec.json.decode(path.read_bytes(), type=FakeGuest)


@pytest.mark.parametrize("act", ["keep", "hand_over"])
def test_record_when_the_process_dies_while_writing_then_the_old_one_is_whole(
        store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: str) -> None:
    def cut(path: Path, data: bytes) -> int:
        path.open("wb").write(data[:5])
        raise KeyboardInterrupt
    monkeypatch.setattr(Path, "write_bytes", cut)
    guest = FakeGuest(uuid="one", name="after", defined=True)
    with pytest.raises(KeyboardInterrupt):
        store.keep(guest) if act == "keep" else store.hand_over(guest, tmp_path / "arrived.json")
    assert saved(tmp_path / "guests" / "one.json").name == "before" and not (tmp_path / "arrived.json").exists()


def test_hand_over_then_the_record_is_at_the_target_alone(store: Store, tmp_path: Path) -> None:
    store.hand_over(FakeGuest(uuid="one", name="after", defined=True), tmp_path / "arrived.json")
    assert saved(tmp_path / "arrived.json").name == "after" and store.find("one") is None
    assert list((tmp_path / "guests").iterdir()) == []
