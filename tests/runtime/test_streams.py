"""What a run shows while it works, and that showing it never breaks or slows it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from agents_runtime.canonical import decode
from agents_runtime.desk import Progress, get_desk
from agents_runtime.models import Run, RunStep
from agents_runtime.streams import Reporter
from reviewer.intake import Desk
from tests.runtime.driving import APPROVE, advance, answer, call, give, pending, script, start

pytestmark = pytest.mark.usefixtures("runtime")
reports: list[tuple[float, Progress]] = []


class RecordingDesk(Desk):
    """The real desk, which also keeps what it was told of progress."""

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """Keep it, and pass it on."""
        reports.append((time.monotonic(), progress))
        super().run_progressed(run, progress)


class BrokenDesk(Desk):
    """A desk that cannot show anything."""

    def run_progressed(self, run: Run, progress: Progress) -> None:
        """Fail slowly."""
        time.sleep(0.05)
        raise OSError("nobody can see this")


@pytest.fixture(autouse=True)
def recording(settings: Settings) -> Iterator[None]:
    reports.clear()
    use_desk(settings, RecordingDesk)
    yield
    get_desk.cache_clear()


def use_desk(settings: Settings, desk: type[Desk]) -> None:
    """Make the runtime speak to this desk."""
    settings.COUNTERSIGN_DESK = f"{__name__}.{desk.__name__}"
    get_desk.cache_clear()


def test_a_run_tells_its_steps_once() -> None:
    run = start("t-per-call", script([call("look", what="x"), call("pay", to="a", amount=1)], say="Well."))
    run = answer(pending(run), APPROVE)
    told = [(step.kind, step.name, step.text) for step in RunStep.objects.filter(run=run)]
    assert told == [
        ("input", "", ""),
        ("model", "", "Well."),
        ("tool", "look", "saw x"),
        ("tool", "pay", "paid 1 to a"),
        ("model", "", "done: saw x | paid 1 to a"),
    ]
    spoken = RunStep.objects.get(run=run, text="Well.")
    assert [made["name"] for made in decode(spoken.data)["tool_calls"]] == ["look", "pay"]
    reported = {pk for _, progress in reports for pk in progress.steps}
    assert reported == set(RunStep.objects.filter(run=run).exclude(kind="input").values_list("pk", flat=True))


def test_text_is_reported_as_it_is_spoken_at_most_ten_times_a_second() -> None:
    said = " ".join(f"word{place}" for place in range(120))
    run = start("t-talker", script([], say=said))
    assert run.status == "finished", run.error
    spoken = [(at, text) for at, progress in reports for _, text in progress.tokens]
    assert "".join(text for _, text in spoken).split() == said.split()
    assert len(spoken) > 2
    times = [at for at, progress in reports if progress.tokens]
    assert all(later - earlier >= 0.09 for earlier, later in itertools.pairwise(times[:-1]))


def test_a_desk_that_cannot_show_progress_does_not_harm_the_run(settings: Settings) -> None:
    use_desk(settings, BrokenDesk)
    run = start("t-talker", script([], say="one two three"))
    assert run.status == "finished", run.error


def test_a_chunk_that_cannot_be_read_is_skipped() -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    with Reporter(run) as reporter:
        reporter.take("what is this?")
        reporter.take(((), "tasks", {"id": 1}))
        reporter.take(((), "messages", ()))


def test_a_repeated_step_is_told_once() -> None:
    run = start("t-per-call", script([call("pay", to="a", amount=1)]))
    before = RunStep.objects.filter(run=run).count()
    run = advance(run)
    assert RunStep.objects.filter(run=run).count() == before
    give(pending(run), APPROVE)
    advance(run)
    keys = list(RunStep.objects.filter(run=run).values_list("key", flat=True))
    assert len(keys) == len(set(keys)) == before + 2
