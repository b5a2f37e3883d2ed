"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inferslo.sidecar.page.words import FORMS, count, percent, seconds, size, times

SHARES = {
    -108.3: "-10,830 %", 1.0: "100 %", 0.99512: "99.51 %", 0.9876: "98.8 %", 0.0: "0 %",
    0.000000512: "0.0000512 %",
}  # fmt: skip


@pytest.mark.parametrize("share", SHARES)
def test_a_share(share: float) -> None:
    assert percent(share) == SHARES[share]


@pytest.mark.parametrize("form", [*FORMS.values(), percent, times, count, seconds, size])
def test_no_number_is_in_powers_of_ten(form: Callable[[float], str]) -> None:
    for power in range(-9, 13):
        for digit in (1.0, 1.2345, 9.996, -3.3):
            said = form(digit * 10**power)
            assert "e" not in said, said


def test_what_is_rounded_keeps_its_size() -> None:
    assert (seconds(0.9996), seconds(1234.0), size(1023)) == ("1,000 ms", "1,230 s", "1,020 B")
    assert (count(0.00001), count(2.5), count(12345)) == ("0.00001", "2.5", "12,345")
