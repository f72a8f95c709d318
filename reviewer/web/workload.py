"""The workload page: figures of the queues a person leads, drawn as numbers, bars and a table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from reviewer.audit.words import VERDICT_WORDS
from reviewer.web.requests import person
from reviewer.workload import Day, workload

VERDICTS = ("approve", "edit", "reject", "respond")
LEFT, STEP, BAR = 40, 33, 18  # where bars stand in a picture of 540 by 156
TOP, FLOOR = 12, 132
STEPS = (4, 8, 20, 40, 80, 120, 200, 400, 800, 1200, 2000, 4000, 8000)


@dataclass(frozen=True)
class Block:
    """One coloured part of a bar."""

    verdict: str
    x: int
    y: float
    height: float


@dataclass(frozen=True)
class Bar:
    """One day's label and parts."""

    x: int
    label: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Chart:
    """Decisions of each day, ready to draw."""

    bars: Sequence[Bar]
    grid: Sequence[tuple[float, int]]
    finding: str
    legend: Sequence[tuple[str, str, int]]

    @property
    def total(self) -> int:
        """All decisions drawn."""
        return sum(total for _verdict, _label, total in self.legend)


@require_GET
@never_cache
def page(request: HttpRequest) -> HttpResponse:
    """Draw the workload."""
    load = workload(person(request))
    return render(request, "workload/workload.html", {"load": load, "chart": chart_of(load.days)})


def chart_of(days: Sequence[Day]) -> Chart:
    """Return the stacked bars of some days on a scale that holds the busiest."""
    top = _round_up(max((day.total for day in days), default=0))
    totals = {verdict: sum(day.counts.get(verdict, 0) for day in days) for verdict in VERDICTS}
    return Chart(
        bars=[_bar(day, LEFT + STEP * at, top) for at, day in enumerate(days)],
        grid=[(_height(top * quarter / 4, top), round(top * quarter / 4)) for quarter in range(0, 5, 2)],
        finding=_finding(days, totals),
        legend=[(verdict, str(VERDICT_WORDS[verdict].label), totals[verdict]) for verdict in VERDICTS],
    )


def _bar(day: Day, x: int, top: int) -> Bar:
    blocks, below = [], 0
    for verdict in VERDICTS:
        count = day.counts.get(verdict, 0)
        if count:
            upper = _height(below + count, top)
            blocks.append(Block(verdict, x, upper, round(_height(below, top) - upper - 0.8, 1)))
        below += count
    return Bar(x, _day_label(day.date), blocks)


def _height(count: float, top: int) -> float:
    return round(FLOOR - (FLOOR - TOP) * count / top, 1)


def _round_up(most: int) -> int:
    return next((step for step in STEPS if step >= most), most)


def _day_label(date: dt.date) -> str:
    return date_format(date, "j")


def _finding(days: Sequence[Day], totals: dict[str, int]) -> str:
    if not days:
        return ""
    return _(
        "Decisions each day from %(first)s to %(last)s: %(total)s in all, %(approved)s of them approved."
    ) % {
        "first": date_format(days[0].date, "j M"),
        "last": date_format(days[-1].date, "j M"),
        "total": sum(totals.values()),
        "approved": totals["approve"],
    }
