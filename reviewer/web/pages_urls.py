"""The addresses of the pages beside the inbox: runs, agents, queues, the trail, the workload."""

from __future__ import annotations

from django.urls import path

from reviewer.web import agents, audit, queues, run, runs, stuck, workload

urlpatterns = [
    path("search/", runs.search, name="search"),
    path("runs/", runs.runs, name="runs"),
    path("runs/start/", runs.choose_agent, name="run_choose"),
    path("runs/start/<str:agent>/", runs.start, name="run_start"),
    path("runs/<uuid:run_id>/", run.run, name="run"),
    path("runs/<uuid:run_id>/steer/", run.steer, name="run_steer"),
    path("runs/<uuid:run_id>/cancel/", run.cancel, name="run_cancel"),
    path("runs/<uuid:run_id>/retry/", run.retry, name="run_retry"),
    path("runs/<uuid:run_id>/settle/", run.settle, name="run_settle"),
    path("runs/<uuid:run_id>/input/", run.add_input, name="run_input"),
    path("runs/<uuid:run_id>/wake/", run.wake, name="run_wake"),
    path("runs/<uuid:run_id>/build/", run.accept_build, name="run_build"),
    path("stuck/", stuck.stuck, name="stuck"),
    path("agents/", agents.agents, name="agents"),
    path("queues/", queues.queues, name="queues"),
    path("queues/<slug:slug>/", queues.queue, name="queue"),
    path("queues/<slug:slug>/rename/", queues.rename, name="queue_rename"),
    path("queues/<slug:slug>/deadline/", queues.set_deadline, name="queue_deadline"),
    path("queues/<slug:slug>/members/", queues.set_member, name="queue_member"),
    path("queues/<slug:slug>/members/remove/", queues.remove_member, name="queue_member_remove"),
    path("queues/<slug:slug>/policies/", queues.save_policy, name="policy_save"),
    path("queues/<slug:slug>/policies/<int:policy_id>/delete/", queues.delete_policy, name="policy_delete"),
    path("tasks/<uuid:task_id>/assign/", queues.assign, name="task_assign"),
    path("tasks/<uuid:task_id>/move/", queues.move, name="task_move"),
    path("audit/", audit.trail, name="audit"),
    path("audit/<int:event_id>/", audit.event, name="audit_event"),
    path("workload/", workload.page, name="workload"),
]
