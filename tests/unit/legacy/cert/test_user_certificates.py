"""Users' certificates: as openssl would make them, found by every revocation, whoever is killed in between."""

from __future__ import annotations

import datetime
import re
import subprocess
import threading
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from nova import errors
from nova.legacy.cert import authority as authorities
from nova.legacy.cert import index
from nova.legacy.cert import service as services
from nova.legacy.cert.authority import Authority

pytestmark = pytest.mark.one_in(2)  # one of two runs has each

SUBJECT = "/C=US/ST=California/O=OpenStack/OU=NovaDev/CN=demo-joe-2026-01-01T00:00:00Z"


def load(text: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(text.encode())


#: How OpenSSL writes names by default, until 3.2 changed that.
AS_ONE_LINE = ("-nameopt", "oneline")


def openssl(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=30)


def listed(folder: Path) -> set[int]:
    """The numbers in the list of what was revoked."""
    return {one.serial_number for one in x509.load_pem_x509_crl((folder / "crl.pem").read_bytes())}


def signed(folder: Path) -> set[int]:
    return {int(path.stem, 16) for path in (folder / "newcerts").glob("*.pem")}


def test_certificate_when_made_then_it_is_what_openssl_prints_and_believes(tmp_path, service, clock, rows):
    certs = service()
    certs.start()
    made = certs.generate_x509_cert("joe", "demo")
    file = tmp_path / "CA/newcerts/10.pem"
    assert file.read_text() == made.certificate
    printed = openssl("x509", "-text", *AS_ONE_LINE, "-in", file).stdout
    same = re.sub(r"(?m)^(\s+(?:Issuer|Subject): .*)$", lambda line: line[1].replace(" = ", "="), printed)
    assert made.certificate == same
    at = str(int(clock.now.timestamp()) + 60)
    assert openssl("verify", "-CAfile", tmp_path / "CA/cacert.pem", "-attime", at, file).returncode == 0
    key = serialization.load_pem_private_key(made.private_key.encode(), None)
    assert key.public_key() == load(made.certificate).public_key() and key.key_size == 2048
    assert made.private_key.startswith("-----BEGIN RSA PRIVATE KEY-----")
    assert (tmp_path / "CA/index.txt").read_text() == f"V\t270101000000Z\t\t10\tunknown\t{SUBJECT}\n"
    assert (tmp_path / "CA/serial").read_text() == "11\n"
    row = rows.rows[str(file)]
    assert (row.user_id, row.project_id) == ("joe", "demo")
    assert row.ends_at == load(made.certificate).not_valid_after_utc.replace(tzinfo=None)
    assert not any(made.private_key in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(("subject", "names"), [
    ("/O=Foo, Inc./CN=%.4s%.4s%s", 'O="Foo, Inc."'), ('/O=a"b/CN=%.4s%.4s%s', r'O=a\"b'),
    ("/O=été/CN=%.4s%.4s%s", r"O=\C3\A9t\C3\A9"),
    ('/O=a", b/CN=%.4s%.4s%s', r'O="a\", b"'), ("/L=#1/CN=%.4s%.4s%s", 'L="#1"')])
def test_certificate_when_the_subject_has_other_signs_then_it_is_still_what_openssl_prints(
        tmp_path, service, subject, names):
    certs = service(user_cert_subject=subject)
    made = certs.generate_x509_cert("j", "d").certificate
    printed = openssl("x509", "-text", *AS_ONE_LINE, "-in", tmp_path / "CA/newcerts/10.pem").stdout
    assert names in made
    assert made == re.sub(r"(?m)^(\s+(?:Issuer|Subject): .*)$", lambda line: line[1].replace(" = ", "="), printed)


def test_openssl_when_it_reads_and_revokes_then_both_sides_know_what_is_valid(
        tmp_path, service, monkeypatch):
    certs = service()
    certs.generate_x509_cert("joe", "demo")
    certs.generate_x509_cert("ann", "demo")
    certs.revoke_certs_by_user("joe")
    monkeypatch.chdir(tmp_path / "CA")
    ca = ("ca", "-config", "openssl.cnf")
    said = {number: openssl(*ca, "-status", number).stderr for number in ("10", "11")}
    assert "10=Revoked" in said["10"] and "11=Valid" in said["11"]
    assert openssl(*ca, "-revoke", "newcerts/11.pem").returncode == 0
    assert openssl(*ca, "-gencrl", "-out", "crl.pem").returncode == 0 and listed(tmp_path / "CA") == {0x10, 0x11}
    assert load(certs.generate_x509_cert("ann", "demo").certificate).serial_number == 0x12
    assert certs.revoke_certs_by_user("ann") == 2 and listed(tmp_path / "CA") == {0x10, 0x11, 0x12}


def test_openssl_when_it_signs_in_the_folder_then_its_certificate_is_one_as_ours(
        tmp_path, service, clock, monkeypatch):
    clock.now = datetime.datetime.now(datetime.UTC)
    certs = service()
    certs.generate_x509_cert("joe", "demo")
    monkeypatch.chdir(tmp_path / "CA")
    assert openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=by hand", "-keyout", tmp_path / "key.pem",
                   "-out", tmp_path / "asked.pem").returncode == 0
    assert openssl("ca", "-config", "openssl.cnf", "-batch", "-in", tmp_path / "asked.pem").returncode == 0
    assert openssl("verify", "-CAfile", "cacert.pem", "newcerts/11.pem").returncode == 0
    assert load(certs.generate_x509_cert("joe", "demo").certificate).serial_number == 0x12


def test_certificate_when_ids_have_signs_that_end_a_part_then_they_are_replaced(tmp_path, service):
    made = service().generate_x509_cert("a/CN=root\tx\n", "p,q=" + "r" * 40)
    [name] = load(made.certificate).subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    assert name.value == "p_q_rrrrrrrrrrrr-a_CN_root_x_-2026-01-01T00:00:00Z"
    assert len(index.read((tmp_path / "CA/index.txt").read_text())) == 1


def test_certificates_when_many_are_made_at_once_then_each_has_its_own_number(tmp_path, service, rows):
    certs, found = service(), []
    certs.start()
    threads = [threading.Thread(target=lambda: found.append(certs.generate_x509_cert("joe", "demo")))
               for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    numbers = {load(one.certificate).serial_number for one in found}
    assert numbers == signed(tmp_path / "CA") == set(range(0x10, 0x16))
    assert set(index.read((tmp_path / "CA/index.txt").read_text())) == numbers and len(rows.rows) == 6


def test_revocation_when_it_is_of_a_user_then_openssl_refuses_these_alone_and_a_second_finds_none(
        tmp_path, service, clock, rows):
    certs = service()
    for user, project in (("joe", "demo"), ("joe", "other"), ("joe", "demo"), ("ann", "demo")):
        certs.generate_x509_cert(user, project)
    assert certs.revoke_certs_by_user("joe") == 3  # in two pages
    first = (tmp_path / "CA/index.txt").read_text()
    clock.now += datetime.timedelta(hours=1)
    assert certs.revoke_certs_by_user("joe") == 0 and (tmp_path / "CA/index.txt").read_text() == first
    assert listed(tmp_path / "CA") == {0x10, 0x11, 0x12} and [*rows.rows] == [str(tmp_path / "CA/newcerts/13.pem")]
    both = tmp_path / "both.pem"
    both.write_text((tmp_path / "CA/cacert.pem").read_text() + (tmp_path / "CA/crl.pem").read_text())
    at = str(int(clock.now.timestamp()))
    verdicts = [openssl("verify", "-crl_check", "-CAfile", both, "-attime", at, tmp_path / f"CA/newcerts/{one}.pem")
                for one in ("10", "11", "12", "13")]
    assert [one.returncode for one in verdicts] == [2, 2, 2, 0] and "certificate revoked" in verdicts[0].stderr
    assert "Serial Number: 12" in openssl("crl", "-text", "-noout", "-in", tmp_path / "CA/crl.pem").stdout
    assert certs.fetch_crl("demo") == (tmp_path / "CA/crl.pem").read_text()


def test_revocation_when_it_is_of_a_project_or_of_a_user_in_it_then_the_others_stay(tmp_path, service, rows):
    certs = service()
    for user, project in (("joe", "demo"), ("joe", "other"), ("ann", "demo"), ("ann", "other")):
        certs.generate_x509_cert(user, project)
    assert certs.revoke_certs_by_user_and_project("joe", "demo") == 1 and listed(tmp_path / "CA") == {0x10}
    assert certs.revoke_certs_by_project("demo") == 1 and listed(tmp_path / "CA") == {0x10, 0x12}
    assert {Path(one).stem for one in rows.rows} == {"11", "13"}


def test_revocation_when_projects_have_their_own_authorities_then_each_lists_its_own(tmp_path, service):
    certs = service(use_project_ca=True)
    certs.generate_x509_cert("joe", "one")
    certs.generate_x509_cert("joe", "two")
    certs.generate_x509_cert("ann", "two")
    assert certs.revoke_certs_by_user("joe") == 2
    assert listed(tmp_path / "CA/projects/one") == {0x10} == listed(tmp_path / "CA/projects/two")
    roots = [load((tmp_path / f"CA/projects/{one}/cacert.pem").read_text()) for one in ("one", "two")]
    assert all(one.subject == one.issuer for one in roots) and roots[0].subject != roots[1].subject
    with pytest.raises(errors.cert.NoProject):
        certs.revoke_certs_by_project("three")
    with pytest.raises(errors.cert.NoProject):
        certs.revoke_certs_by_user_and_project("joe", "three")
    assert not (tmp_path / "CA/projects/three").exists() and certs.revoke_certs_by_project("one") == 0


def test_revocation_when_the_folder_has_moved_then_it_is_the_moved_authoritys(tmp_path, service):
    old = service(use_project_ca=True)
    old.generate_x509_cert("joe", "demo")
    (tmp_path / "CA").rename(tmp_path / "moved")
    assert service(use_project_ca=True, ca_path=str(tmp_path / "moved")).revoke_certs_by_user("joe") == 1
    assert listed(tmp_path / "moved/projects/demo") == {0x10} and not (tmp_path / "CA").exists()


def test_revocation_when_the_authority_is_gone_then_the_rows_go(tmp_path, service, rows, caplog):
    certs = service(use_project_ca=True)
    certs.generate_x509_cert("joe", "demo")
    (tmp_path / "CA/projects/demo").rename(tmp_path / "lost")
    assert certs.revoke_certs_by_user("joe") == 1 and not rows.rows
    assert not (tmp_path / "CA/projects/demo").exists() and "no longer exists" in caplog.text


def test_revocation_when_a_row_names_no_certificate_then_it_is_told(service, rows):
    certs = service()
    certs.generate_x509_cert("joe", "demo")
    [name] = rows.rows
    rows.rows[name] = rows.rows.pop(name).__class__(
        user_id="joe", project_id="demo", file_name="/etc/passwd", ends_at=datetime.datetime(2027, 1, 1))
    with pytest.raises(errors.cert.Damaged, match="/etc/passwd"):
        certs.revoke_certs_by_user("joe")


def test_certificate_when_it_is_revoked_before_it_is_signed_then_it_is_not_signed(tmp_path, service, rows):
    certs = service()
    certs.start()

    def keep(certificate):
        rows.own("keep_certificate")(certificate)
        assert certs.revoke_certs_by_user("joe") == 1
    rows.given(keep_certificate=keep)
    with pytest.raises(errors.cert.Revoked):
        certs.generate_x509_cert("joe", "demo")
    assert signed(tmp_path / "CA") == set() and listed(tmp_path / "CA") == {0x10} and not rows.rows
    rows.given(keep_certificate=None)
    assert load(certs.generate_x509_cert("joe", "demo").certificate).serial_number == 0x11


def test_certificate_when_no_conductor_answers_then_nothing_is_signed(tmp_path, service, rows):
    certs = service()
    certs.start()
    rows.away = True
    with pytest.raises(errors.Unavailable, match="nova-conductor"):
        certs.generate_x509_cert("joe", "demo")
    with pytest.raises(errors.Unavailable, match="nova-conductor"):
        certs.revoke_certs_by_user("joe")
    assert signed(tmp_path / "CA") == set()


# -- killed at every point


class Killed(BaseException):
    """As SIGKILL between two writes: nothing of what follows is done."""


@pytest.fixture
def kill_at(monkeypatch, rows):
    """``kill_at(n)``: the process ends instead of its n-th write, of a file or of rows. Files are written whole or not
    at all, so these are all the states that it can leave; there is no other way to stop at each of them."""
    left = [0]
    write, forget, keep = authorities.write_whole, rows.own("forget_certificates"), rows.own("keep_certificate")

    def counted(step):
        def act(*args, **kwargs):
            left[0] -= 1
            if left[0] == 0:
                raise Killed
            return step(*args, **kwargs)
        return act
    monkeypatch.setattr(authorities, "write_whole", counted(write))
    rows.given(forget_certificates=counted(forget), keep_certificate=counted(keep))

    def arm(number: int) -> None:
        left[0] = number
    one_key = authorities.new_key()
    monkeypatch.setattr(authorities, "new_key", lambda: one_key)  # it takes time, and is no point of these
    monkeypatch.setattr(services, "new_key", lambda: one_key)
    return arm


def killed(kill_at, number, act) -> bool:
    kill_at(number)
    try:
        act()
    except Killed:
        return True
    finally:
        kill_at(0)
    return False


def test_generate_when_it_is_killed_at_any_write_then_what_was_signed_is_found_by_a_revocation(
        tmp_path, service, rows, kill_at):
    points = 0
    for number in range(1, 20):
        folder = tmp_path / str(number)
        certs = service(folder)
        certs.start()
        if not killed(kill_at, number, lambda certs=certs: certs.generate_x509_cert("joe", "demo")):
            break
        points += 1
        ca = folder / "CA"
        assert signed(ca) <= {int(Path(one).stem, 16) for one in rows.rows if one.startswith(f"{ca}/")}
        again = service(folder)
        again.start()
        made = load(again.generate_x509_cert("joe", "demo").certificate)
        assert made.serial_number not in signed(ca) - {made.serial_number}
        again.revoke_certs_by_user("joe")
        assert signed(ca) <= listed(ca) and not rows.rows
    assert points == 4  # serial, row, certificate, index


def test_revoke_when_it_is_killed_at_any_write_then_doing_it_again_ends_the_same(tmp_path, service, rows, kill_at):
    points = 0
    for number in range(1, 20):
        folder = tmp_path / str(number)
        certs, ca = service(folder), folder / "CA"
        for user in ("joe", "ann", "joe", "joe"):
            certs.generate_x509_cert(user, "demo")
        ended = not killed(kill_at, number, lambda certs=certs: certs.revoke_certs_by_user("joe"))
        gone = {0x10, 0x11, 0x12, 0x13} - {int(Path(one).stem, 16) for one in rows.rows}
        assert gone <= listed(ca), "a row is gone whose number is not in the list"
        again = service(folder)
        again.start()
        revoked = {one.serial for one in index.read((ca / "index.txt").read_text()).values() if one.status == "R"}
        assert listed(ca) == revoked, "the start writes the list that was not written"
        again.revoke_certs_by_user("joe")
        assert listed(ca) == {0x10, 0x12, 0x13} and len(rows.rows) == 1
        again.revoke_certs_by_user("ann")
        if ended:
            break
        points += 1
    assert points == 6  # index, list, rows: of two pages


# -- damaged, full, open


@pytest.mark.parametrize(("name", "text"), [
    ("serial", "no number"), ("serial", ""), ("index.txt", "V\thalf"), ("cacert.pem", "no certificate"),
    ("crl.pem", "no list"), ("private/cakey.pem", "no key")])
def test_file_when_it_is_damaged_then_the_error_names_it_and_nothing_is_overwritten(
        tmp_path, service, name, text, caplog):
    certs = service()
    certs.generate_x509_cert("joe", "demo")
    (tmp_path / "CA" / name).write_text(text)

    def all_of_it():
        certs.generate_x509_cert("joe", "demo")
        certs.revoke_certs_by_user("joe")
    with pytest.raises(errors.cert.Damaged, match=f"nova-cert cannot use {name}") as caught:
        all_of_it()
    assert (tmp_path / "CA" / name).read_text() == text
    assert str(tmp_path) not in caught.value.message and str(tmp_path) in caplog.text


def test_serial_when_it_is_older_than_the_index_then_no_number_is_given_twice(tmp_path, service):
    certs = service()
    certs.generate_x509_cert("joe", "demo")
    certs.generate_x509_cert("joe", "demo")
    (tmp_path / "CA/serial").write_text("10\n")
    assert load(certs.generate_x509_cert("joe", "demo").certificate).serial_number == 0x12
    (tmp_path / "CA/serial").unlink()
    assert load(certs.generate_x509_cert("joe", "demo").certificate).serial_number == 0x13


@pytest.mark.parametrize("at", [1, 2, 3])
def test_certificate_when_the_disk_is_full_then_it_is_told_and_the_next_goes_on(
        tmp_path, service, rows, monkeypatch, at):
    certs, write, left = service(), authorities.write_whole, [at]
    certs.start()

    def full(*args, **kwargs):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(28, "No space left on device", str(args[0]))
        return write(*args, **kwargs)
    monkeypatch.setattr(authorities, "write_whole", full)  # a full disk needs root
    with pytest.raises(errors.cert.Files, match="No space left on device") as caught:
        certs.generate_x509_cert("joe", "demo")
    assert str(tmp_path) not in caught.value.message
    certs.generate_x509_cert("joe", "demo")
    certs.revoke_certs_by_user("joe")
    assert signed(tmp_path / "CA") <= listed(tmp_path / "CA") and not rows.rows


def test_key_when_others_may_read_it_then_it_is_closed_and_told(tmp_path, service, caplog):
    certs = service()
    certs.start()
    (tmp_path / "CA/private/cakey.pem").chmod(0o644)
    (tmp_path / "CA/private").chmod(0o755)
    certs.renew()
    assert (tmp_path / "CA/private/cakey.pem").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "CA/private").stat().st_mode & 0o777 == 0o700 and "was open to other users" in caplog.text


@pytest.mark.parametrize(("name", "folder"), [("hidden/key.pem", "hidden"), ("key.pem", None)])
def test_key_when_the_option_names_another_file_then_it_is_as_private_there(tmp_path, service, name, folder):
    service(key_file=name).start()
    assert (tmp_path / "CA" / name).stat().st_mode & 0o777 == 0o600
    assert folder is None or (tmp_path / "CA" / folder).stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "CA/newcerts").stat().st_mode & 0o777 == 0o755


def test_login_key_when_it_is_damaged_then_the_error_names_it(tmp_path, service):
    certs = service()
    certs.vpn_credentials("demo")
    (tmp_path / "keys/demo-vpn.pem").write_text("no key")
    with pytest.raises(errors.cert.Damaged, match="demo-vpn.pem"):
        certs.vpn_credentials("demo")


def test_authority_when_openssl_made_it_then_it_goes_on_with_it(tmp_path, service, clock):
    """One of an older release: its key, its numbers, its lines, words before the certificate."""
    ca = tmp_path / "CA"
    for name in ("private", "newcerts"):
        (ca / name).mkdir(parents=True)
    assert openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650", "-text", "-subj", "/O=OLD ROOT",
                   "-keyout", ca / "private/cakey.pem", "-out", ca / "cacert.pem").returncode == 0
    (ca / "serial").write_text("1A\n")
    (ca / "index.txt").write_text("V\t270101000000Z\t\t19\tunknown\t/CN=old\n")
    clock.now = datetime.datetime.now(datetime.UTC)
    made = load(service().generate_x509_cert("joe", "demo").certificate)
    assert made.serial_number == 0x1A and made.issuer.rfc4514_string() == "O=OLD ROOT"
    assert openssl("verify", "-CAfile", ca / "cacert.pem", ca / "newcerts/1A.pem").returncode == 0


def test_subject_of_projects_when_it_changes_then_an_authority_that_is_there_keeps_its_own(tmp_path, service, clock):
    first = service(use_project_ca=True).fetch_ca("demo")
    clock.now += datetime.timedelta(days=350)
    later = service(use_project_ca=True, project_cert_subject="/O=New/CN=%s-%s")
    assert load(later.fetch_ca("demo")).subject == load(first).subject
    made = load(later.generate_x509_cert("joe", "demo").certificate)
    assert made.issuer == load(first).subject


@pytest.mark.parametrize("value", [
    "/CN=%.4s", "/CN=%.4s%.4s%s%s", "/XX=%.4s%.4s%s", "/C=Earth/CN=%.4s%.4s%s", "no%.4s%.4s%s", "/CN=%s%s%s"])
def test_subject_when_the_option_makes_none_then_the_error_names_it_at_once(service, value):
    with pytest.raises(errors.cert.Subject, match="user_cert_subject"):
        service(user_cert_subject=value)


def test_authority_when_revoke_is_repeated_then_the_first_time_stays(tmp_path, clock):
    authority = Authority(tmp_path, "/O=R", clock=clock)
    authority.ensure()
    authority.revoke([0x10])
    before = (tmp_path / "index.txt").read_text()
    clock.now += datetime.timedelta(days=1)
    authority.revoke([0x10])
    assert (tmp_path / "index.txt").read_text() == before and listed(tmp_path) == {0x10}
