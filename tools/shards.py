# SPDX-License-Identifier: Apache-2.0
"""Parts of a long list of checks, one for each machine: 2/5 is the second of five."""

import argparse
from dataclasses import dataclass


@dataclass(frozen=True)
class Shard:
    number: int = 1  # from 1
    total: int = 1

    @property
    def is_first(self):
        return self.number == 1

    @property
    def is_all(self):
        return self.total == 1

    def of(self, items):
        """Every item is in one shard. Neighbours, which take about as long, are in different ones."""
        return items[self.number - 1::self.total]

    def __str__(self):
        return f"{self.number}/{self.total}"


def shard(text):
    """For argparse."""
    number, slash, total = text.partition("/")
    if not (slash and number.isdecimal() and total.isdecimal() and 1 <= int(number) <= int(total)):
        raise argparse.ArgumentTypeError(f"'{text}' is not like 2/5, the second of five parts")
    return Shard(int(number), int(total))
