"""Errors of the humans' side. Pages and the API answer them alike: 404, 403, 409, 422."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agents_runtime.errors import Problem

if TYPE_CHECKING:
    from reviewer.models import ReviewTask


class ReviewProblem(Exception):
    """Base of every error raised on purpose here; its text is fit for a reader."""


class NotFound(ReviewProblem):
    """It does not exist, or this person may not know that it does."""


class NotAllowed(ReviewProblem):
    """This person may see it, but not do this."""


class Conflict(ReviewProblem):
    """It has moved on: ``code`` says how; ``who`` and ``when`` say by whom, where a person did it.

    ``task`` is the one it is about; ``tasks`` are those that stand in the way.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        who: str = "",
        when: dt.datetime | None = None,
        task: ReviewTask | None = None,
        tasks: Sequence[ReviewTask] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.who = who
        self.when = when
        self.task = task
        self.tasks = tasks


class Invalid(ReviewProblem):
    """What was sent does not fit; ``problems`` says where (JSON pointers) and why."""

    def __init__(self, message: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.problems = problems or (Problem("", message),)


class Unread(Invalid):
    """The person would approve what they have not seen whole: ``problems`` names each part still hidden."""
