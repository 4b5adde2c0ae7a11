"""Docstrings and the examples of docs/PYTHON.md run."""

import doctest
import os
import re
from pathlib import Path

import pytest

import sidon
import sidon.plan
import sidon.tables
import sidon.traffic
import sidon.zone

OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("module", [sidon, sidon.plan, sidon.tables, sidon.traffic])
def test_docstrings(module):
    found = doctest.testmod(module, optionflags=OPTIONS)
    assert found.attempted > 0 and found.failed == 0


def test_classes_have_docstrings_with_examples():
    names = ["Set", "Map", "Machine", "Min", "Top", "Prefixes", "Distinct", "FanOut", "State"]
    for kind in [*(getattr(sidon, name) for name in names), sidon.zone.Filter, sidon.zone.Sketch]:
        assert ">>> " in kind.__doc__
    for kind in [sidon.zone.Filter, sidon.zone.Sketch, sidon.zone.Adaptive, sidon.zone.Hosts]:
        tests = doctest.DocTestFinder().find(kind, kind.__name__, module=False)
        runner = doctest.DocTestRunner(optionflags=OPTIONS)
        assert sum(runner.run(test).attempted for test in tests) > 0 and runner.summarize().failed == 0


def test_the_tour(tmp_path):
    text = (ROOT / "docs/PYTHON.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.S | re.M)
    assert len(blocks) >= 8
    # An empty line ends the output of the last example of a block.
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "PYTHON.md", "docs/PYTHON.md", 0)
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        assert runner.run(test).failed == 0
    finally:
        os.chdir(before)
    assert (tmp_path / "day.sidon").exists()
