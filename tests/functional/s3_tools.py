"""The unmodified clients of S3, as programs and libraries, for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import boto
import boto3
import requests
from boto.auth import S3HmacAuthV4Handler
from boto.auth_handler import AuthHandler
from boto.s3.connection import OrdinaryCallingFormat
from botocore.config import Config

ELSEWHERE = "127.0.0.2"  # another machine's, for who is asked
PROGRAMS = Path(sys.executable).parent
REGION = "RegionOne"
MIB = 1 << 20


class AddressAuth(S3HmacAuthV4Handler, AuthHandler):
    """boto 2's signer of version 4, which finds no region in an address: boto takes the last that can do it."""

    capability = ["hmac-v4-s3"]

    def determine_region_name(self, host: str) -> str:
        """Any is right."""
        return REGION


class S3Keys(NamedTuple):
    access: str
    secret: str


class S3User(NamedTuple):
    """Whose keys they are, and where S3 is. ``cafile``: of its certificate; empty for plain HTTP."""

    url: str
    keys: S3Keys
    cafile: str = ""

    def wrong(self) -> S3User:
        """The same with another secret."""
        return self._replace(keys=S3Keys(self.keys.access, "wrong"))

    # -- programs

    def aws(self, *words: str) -> subprocess.CompletedProcess[str]:
        """``aws s3 WORDS``."""
        environment = {"AWS_ACCESS_KEY_ID": self.keys.access, "AWS_SECRET_ACCESS_KEY": self.keys.secret,
                       "AWS_DEFAULT_REGION": REGION, "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull,
                       "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_CA_BUNDLE": self.cafile}
        return _run("aws", "--endpoint-url", self.url, "s3", *words, **environment)

    def s3cmd(self, *words: str, v2: bool = False) -> subprocess.CompletedProcess[str]:
        """``s3cmd WORDS``."""
        place = urlsplit(self.url).netloc
        return _run("s3cmd", "-c", os.devnull, "--no-ssl", f"--host={place}", f"--host-bucket={place}",
                    f"--access_key={self.keys.access}", f"--secret_key={self.keys.secret}", f"--region={REGION}",
                    "--no-progress", *(["--signature-v2"] if v2 else []), *words)

    # -- libraries

    def boto3(self, **config: Any) -> Any:
        """boto3's client; ``config``: of botocore."""
        return boto3.client("s3", endpoint_url=self.url, aws_access_key_id=self.keys.access,
                            aws_secret_access_key=self.keys.secret, region_name=REGION, verify=self.cafile or None,
                            config=Config(retries={"total_max_attempts": 1}, **config))

    def boto2(self) -> Any:
        """boto 2's connection. It signs by version 4 where ``S3_USE_SIGV4`` is in the environment."""
        place = urlsplit(self.url)
        return boto.connect_s3(self.keys.access, self.keys.secret, is_secure=False, port=place.port,
                               host=place.hostname, calling_format=OrdinaryCallingFormat())


def _run(program: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run([PROGRAMS / program, *words], capture_output=True, text=True, timeout=100,
                          env={**kept, "LC_ALL": "C.UTF-8", **{name: one for name, one in environment.items() if one}})


def from_elsewhere() -> requests.Session:
    """Whose requests come from another address than everybody else's."""
    class Adapter(requests.adapters.HTTPAdapter):
        def init_poolmanager(self, *args: Any, **more: Any) -> None:
            super().init_poolmanager(*args, **more, source_address=(ELSEWHERE, 0))

    session = requests.Session()
    session.mount("http://", Adapter())
    return session


def done(result: subprocess.CompletedProcess[str]) -> str:
    """What a program said that ended well."""
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def refused(result: subprocess.CompletedProcess[str]) -> str:
    """What a program said that failed."""
    assert result.returncode != 0, result.stdout
    return result.stdout + result.stderr
