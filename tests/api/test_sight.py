"""Who gets what from which address: what a person may not see does not exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from agents_runtime.canonical import encode
from agents_runtime.desk import ReviewRequest
from agents_runtime.models import Pause
from reviewer.accounts.models import User
from reviewer.decisions import decide
from reviewer.models import QueueMembership, ReviewTask
from tests.cast import Cast
from tests.deciding.making import APPROVE, decision_schema, open_refund, pause_run
from tests.doors import ApiClient, json_of

Programs = Callable[..., ApiClient]

SEEN_BY = {
    "reviewer": 200,
    "reviewer2": 200,
    "lead": 200,
    "admin": 200,
    "auditor": 200,
    "developer": 200,  # started the run
    "outsider": 404,
}
DECIDED_BY = {
    "reviewer": 200,
    "reviewer2": 200,
    "lead": 200,
    "admin": 403,  # sees every queue, and is a member of none
    "auditor": 403,
    "developer": 403,
    "outsider": 404,
}
STEERED_BY = {
    "reviewer": 200,  # a member of the queue that the run has asked
    "reviewer2": 200,
    "lead": 200,
    "admin": 200,
    "auditor": 403,
    "developer": 200,
    "outsider": 404,
}
AUDITED_BY = {
    "reviewer": 403,
    "reviewer2": 403,
    "lead": 403,
    "admin": 200,
    "auditor": 200,
    "developer": 403,
    "outsider": 403,
}


@pytest.fixture
def task(cast: Cast) -> ReviewTask:
    return open_refund(by=cast.developer)


@pytest.mark.parametrize(("name", "status"), SEEN_BY.items())
def test_a_task_is_seen_by_those_it_concerns(
    cast: Cast, api_client: Programs, task: ReviewTask, name: str, status: int
) -> None:
    program = api_client(cast.people[name])
    assert program.get(f"tasks/{task.pk}").status_code == status
    listed = json_of(program.get("tasks"))
    assert (listed["total"] == 1) == (status == 200)


@pytest.mark.parametrize(("name", "status"), SEEN_BY.items())
def test_a_run_is_seen_by_those_it_concerns(
    cast: Cast, api_client: Programs, task: ReviewTask, name: str, status: int
) -> None:
    assert api_client(cast.people[name]).get(f"runs/{task.run_id}").status_code == status


@pytest.mark.parametrize(("name", "status"), DECIDED_BY.items())
def test_only_members_decide_and_never_who_started_the_run(
    cast: Cast, api_client: Programs, task: ReviewTask, name: str, status: int
) -> None:
    program = api_client(cast.people[name])
    response = program.post(f"tasks/{task.pk}/decision", {"answer": APPROVE, "digest": task.digest})
    assert response.status_code == status


@pytest.mark.parametrize("verb", ["claim", "release"])
@pytest.mark.parametrize(("name", "status"), [("outsider", 404), ("reviewer", 200)])
def test_claims_are_for_members(
    cast: Cast, api_client: Programs, task: ReviewTask, name: str, status: int, verb: str
) -> None:
    assert api_client(cast.people[name]).post(f"tasks/{task.pk}/{verb}").status_code == status


@pytest.mark.parametrize(("name", "status"), STEERED_BY.items())
def test_a_run_is_steered_by_those_it_asked_its_developer_and_leads(
    cast: Cast, api_client: Programs, task: ReviewTask, name: str, status: int
) -> None:
    assert api_client(cast.people[name]).post(f"runs/{task.run_id}/cancel").status_code == status


def test_those_whom_a_run_asked_do_not_give_it_new_input(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    response = api_client(cast.reviewer).post(f"runs/{task.run_id}/input", {"input": {}})
    assert response.status_code == 403


@pytest.mark.parametrize(("name", "status"), AUDITED_BY.items())
def test_the_trail_is_for_admins_and_auditors(
    cast: Cast, api_client: Programs, task: ReviewTask, name: str, status: int
) -> None:
    assert api_client(cast.people[name]).get("audit").status_code == status


@pytest.mark.parametrize(
    ("name", "status"), [("outsider", 404), ("developer", 404), ("auditor", 403), ("reviewer", 200)]
)
def test_the_next_task_is_claimed_by_members(
    cast: Cast, api_client: Programs, task: ReviewTask, name: str, status: int
) -> None:
    assert api_client(cast.people[name]).post("queues/payments/claim-next").status_code == status


ADDRESSES = [
    ("get", "tasks"),
    ("get", "tasks/{task}"),
    ("post", "tasks/{task}/decision"),
    ("post", "tasks/{task}/claim"),
    ("post", "tasks/{task}/release"),
    ("get", "runs/{run}"),
    ("post", "runs"),
    ("post", "runs/{run}/cancel"),
    ("post", "runs/{run}/retry"),
    ("post", "runs/{run}/build"),
    ("post", "runs/{run}/settle"),
    ("post", "runs/{run}/input"),
    ("post", "queues/payments/claim-next"),
    ("get", "audit"),
]


@pytest.mark.parametrize(("method", "address"), ADDRESSES)
def test_nothing_opens_without_a_token(
    cast: Cast, api_client: Programs, task: ReviewTask, method: str, address: str
) -> None:
    response = getattr(api_client(None), method)(address.format(task=task.pk, run=task.run_id))
    assert response.status_code == 401
    assert response["WWW-Authenticate"].startswith("Bearer")
    assert json_of(response)["error"] == "unauthorized"


@pytest.mark.parametrize(("method", "address"), ADDRESSES[1:12])
def test_an_unknown_id_is_a_404_in_json(cast: Cast, api_client: Programs, method: str, address: str) -> None:
    if "{" not in address:
        return
    bodies = {"decision": {"answer": 1, "digest": "x"}, "settle": {"outcome": "stop"}, "input": {"input": {}}}
    arguments = [bodies.get(address.rsplit("/", 1)[-1])] if method == "post" else []
    response = getattr(api_client(cast.admin), method)(address.format(task=uuid4(), run=uuid4()), *arguments)
    assert response.status_code == 404
    assert json_of(response)["error"] == "not_found"


def test_pauses_of_a_run_keep_what_belongs_to_queues_one_is_not_in(
    cast: Cast, api_client: Programs, task: ReviewTask
) -> None:
    task.queue = cast.general
    task.save()
    cast.reviewer.memberships.filter(queue=cast.general).delete()
    other = open_refund(by=cast.developer)
    ReviewTask.objects.filter(pk=other.pk).update(run=task.run)
    shown = json_of(api_client(cast.reviewer).get(f"runs/{task.run_id}"))
    assert [pause["tasks"] for pause in shown["pauses"]] == [[]]
    assert [pause["response_schema"] for pause in shown["pauses"]] == [None]


LOGIN_ARGS: Any = {
    "type": "object",
    "properties": {
        "user": {"type": "string"},
        "pin": {"type": "string", "writeOnly": True},
        "api_key": {"type": "string"},
    },
}
SECRETS = {"pin": "hunter2-pin", "api_key": "hunter2-key"}


@pytest.mark.parametrize("name", [name for name, status in SEEN_BY.items() if status == 200])
@pytest.mark.parametrize("is_decided", [False, True])
def test_secrets_go_only_to_those_who_could_decide(
    cast: Cast, api_client: Programs, name: str, is_decided: bool
) -> None:
    args = {"user": "ann", **SECRETS}
    request = _reset(args, refused_answer=_edit(args))
    pause = pause_run(request, by=cast.developer)
    Pause.objects.filter(pk=pause.pk).update(
        value=encode({"type": "tool_approval", "name": "reset_login", "args": args}),
        response_schema=encode(request.response_schema),
    )
    task = pause.tasks.get()
    if is_decided:
        changed = _edit({**args, "pin": "hunter2-new", "api_key": "hunter2-too"})
        decide(task.pk, by=cast.reviewer2, answer=changed, digest=task.digest)
    program = api_client(cast.people[name])
    answers = [program.get(f"tasks/{task.pk}"), program.get(f"runs/{task.run_id}")]
    assert [answer.status_code for answer in answers] == [200, 200]
    told = [answer.content.decode() for answer in answers]
    assert "ann" in told[0], told
    assert [("hunter2" in text) for text in told] == [DECIDED_BY[name] == 200] * 2


def test_secrets_go_by_the_membership_of_the_moment_and_by_the_role(cast: Cast, api_client: Programs) -> None:
    args = {"user": "ann", **SECRETS}
    task = pause_run(_reset(args), by=cast.developer).tasks.get()
    decide(task.pk, by=cast.reviewer, answer=_edit({**args, "pin": "hunter2-new"}), digest=task.digest)

    def are_told(person: User) -> list[bool]:
        program = api_client(person)
        answers = [program.get(f"tasks/{task.pk}"), program.get(f"tasks/{task.pk}/decision")]
        assert [answer.status_code for answer in answers] == [200, 200]
        return ["hunter2" in answer.content.decode() for answer in answers]

    for person, is_told in ((cast.admin, True), (cast.auditor, False), (cast.developer, False)):
        assert are_told(person) == [False, False]
        QueueMembership.objects.create(queue=task.queue, user=person)
        assert are_told(person) == [is_told, is_told]
    assert are_told(cast.reviewer) == [True, True]
    cast.reviewer.memberships.filter(queue=task.queue).delete()
    assert are_told(cast.reviewer) == [False, False]  # who decided a task keeps seeing it


def _reset(args: Any, **more: Any) -> ReviewRequest:
    schema = decision_schema("reset_login", LOGIN_ARGS)
    return ReviewRequest(
        position=0,
        kind="tool_call",
        tool="reset_login",
        tool_call_id="c1",
        arguments=args,
        response_schema=schema,
        **more,
    )


def _edit(args: Any) -> Any:
    return {"type": "edit", "edited_action": {"name": "reset_login", "args": args}}
