"""``manage.py check_agents``: for deploy pipelines: which unfinished runs could today's build not take up?"""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents_runtime import registry
from agents_runtime.canonical import decode
from agents_runtime.errors import AgentUnavailable
from agents_runtime.models import AgentSpec, Run

OTHER_BUILD = "its agent's nodes, tools, gates or libraries are others than it began on"
NO_NODE = "it waits at {nodes}, which its agent has no more: only its old build can take it up"


class Command(BaseCommand):
    """Exits with an error if a run is listed. Run it on a worker with the new code, before the switch."""

    help = "List unfinished runs that began on another build of their agent, each with the reason."

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare the build of each run that has begun with the one that this process imports."""
        begun = Run.objects.live().exclude(state="").select_related("agent")
        builds: dict[str, _Build] = {}
        stuck = 0
        for run in begun.iterator():
            build = builds.get(run.agent.name) or builds.setdefault(run.agent.name, _Build(run.agent))
            if reason := build.obstacle(run):
                stuck += 1
                self.stdout.write(f"{run.short_id} {run.agent.name} ({run.get_status_display()}): {reason}")
        if stuck:
            raise CommandError(f"{stuck} run(s) would stop and ask whether to go on with this build.")
        self.stdout.write("Every unfinished run can go on with this build.")


class _Build:
    """One agent as this process imports it."""

    def __init__(self, agent: AgentSpec) -> None:
        self.trouble, self.fingerprint, self.nodes = "", "", frozenset[str]()
        try:
            graph = registry.load_graph(agent)
        except AgentUnavailable as problem:
            self.trouble = str(problem)
        else:
            self.fingerprint, self.nodes = registry.graph_fingerprint(graph), frozenset(graph.nodes)

    def obstacle(self, run: Run) -> str:
        """Say why this build could not take the run up, if so."""
        if self.trouble:
            return self.trouble
        if run.fingerprint in {"", self.fingerprint}:
            return ""
        lost = sorted(set(decode(run.state)["next"]) - self.nodes)
        return NO_NODE.format(nodes=", ".join(lost)) if lost else OTHER_BUILD
