"""Every test draws numbers of its own, the same ones whichever tests ran before it and in whichever process.

Test modules share one generator (`RNG`) among their tests. Run in parallel, a test would draw what the tests that happened
to run before it left, and one that passes a thousand times would fail on the next machine. So the generators of a module are
set anew for each fixture and each test, from their own seed and the name of what is to run. Properties try the same examples
each time for the same reason; new ones are what `make fuzz` is for, or `pytest --hypothesis-profile=default`.
"""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("same", derandomize=True)
settings.load_profile("same")

SEEDS: dict[int, tuple[np.random.Generator, int]] = {}  # by identity: generators of all modules, and what they were seeded with


def generators(module) -> list[np.random.Generator]:
    return [value for value in vars(module).values() if isinstance(value, np.random.Generator)]


def set_anew(module, name: str) -> None:
    for generator in generators(module):
        if id(generator) in SEEDS:
            fresh = type(generator.bit_generator)([SEEDS[id(generator)][1], zlib.crc32(name.encode())])
            generator.bit_generator.state = fresh.state


def pytest_collection_modifyitems(items):
    for module in {item.module for item in items if hasattr(item, "module")}:
        for generator in generators(module):
            SEEDS.setdefault(id(generator), (generator, generator.bit_generator.state["state"]["state"]))


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    if request.module is not None:
        set_anew(request.module, f"{fixturedef.argname} {getattr(request, 'param_index', 0)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    if hasattr(item, "module"):
        set_anew(item.module, item.name)
