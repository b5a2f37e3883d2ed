"""From which value on a number is worth a look: what the early warnings say, in one place."""

from __future__ import annotations

from decimal import Decimal

import pytest
from plans import objective, plan

from inferslo.rules.warnings import catalogue
from inferslo.sidecar.page.figures import FIGURES, Figure, limit

BY_WARNING = [each for figures in FIGURES.values() for each in figures if each.warning]


@pytest.mark.parametrize("figure", BY_WARNING, ids=lambda figure: figure.warning)
def test_a_number_is_high_from_the_threshold_of_its_early_warning_on(figure: Figure) -> None:
    [default] = [each.threshold for each in catalogue() if each.name == figure.warning]
    assert default is not None
    assert limit(figure, None) == float(default)
    one = objective("ttft")
    assert limit(figure, plan(one)) == float(default)
    own = plan(one, warnings=((figure.warning, Decimal("0.42")),))
    assert limit(figure, own) == 0.42
    off = plan(one, warnings=((figure.warning, None),))
    assert limit(figure, off) is None


def test_there_are_such_numbers() -> None:
    assert {figure.warning for figure in BY_WARNING} == {"kv_full", "kv_fragmentation"}
