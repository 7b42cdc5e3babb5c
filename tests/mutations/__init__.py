"""Past security bugs, made again one by one: row of the table of past bugs -> the edit that takes its property away.

``python -m tests.mutations`` tries them (``bin/test mutations``).
"""

from __future__ import annotations

from tests.mutations.form import Mutation
from tests.mutations.notes import MUTATIONS as NOTES
from tests.mutations.years_2011_to_2013 import MUTATIONS as TO_2013
from tests.mutations.years_2014_to_2016 import MUTATIONS as TO_2016
from tests.mutations.years_2017_on import MUTATIONS as FROM_2017

MUTATIONS: dict[str, Mutation] = {**TO_2013, **TO_2016, **FROM_2017, **NOTES}
