"""``python -m nova.imageinspector FILE``: writes the file's format as JSON to standard output."""

import sys

import msgspec

from nova.imageinspector import inspect

sys.stdout.buffer.write(msgspec.json.encode(inspect(sys.argv[1])))
