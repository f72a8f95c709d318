"""`make run`: from nothing to a ready product, then its supervision, then its orderly end.

check -> servers -> preparations -> processes and registration -> ready -> watch -> stop
"""

import contextlib
import http.client
import secrets
import time
from collections.abc import Mapping
from http import HTTPStatus

from reviewer.launch import beside, preflight, statics, terminal
from reviewer.launch.chores import Chores
from reviewer.launch.errors import LaunchError
from reviewer.launch.home import Home, open_home
from reviewer.launch.options import Options, read_options
from reviewer.launch.plan import REGISTRATION, preparations, process_table
from reviewer.launch.postgres import prepare_given_database
from reviewer.launch.services import Services, running_services
from reviewer.launch.stopping import StopRequested, StopRequests
from reviewer.launch.supervisor import POLL_SECONDS, Supervisor

READY_SECONDS = 120.0
KEY_FILE = "secret_key"


def run(environment: Mapping[str, str]) -> None:
    """Run until asked to stop. Raises LaunchError when the product cannot start or go on."""
    requests = StopRequests()
    options = read_options(environment)
    home = open_home(options.home)
    with home.held():
        preflight.check(options)
        port = options.port or preflight.free_port(options.host)
        try:
            _run_held(environment, options, home, port, requests)
        except StopRequested:
            terminal.say("\nStopped.")


def _run_held(
    environment: Mapping[str, str], options: Options, home: Home, port: int, requests: StopRequests
) -> None:
    terminal.say("Starting Countersign")
    with contextlib.ExitStack() as stack:
        services = _start_services(stack, options, home)
        if options.database_url and options.owner_url:
            prepare_given_database(options.owner_url, options.database_url)
        env = product_env(environment, options, home, port) | services.env()
        stack.callback(beside.forget, home)
        beside.note(home, env)
        chores = Chores(stack, home, env=env, owner_env=_owner_env(options, services), requests=requests)
        with terminal.step("Database, accounts, styles"):
            chores.do(preparations(static_is_current=statics.are_current(home)))
            statics.note_current(home)
        supervisor = Supervisor(home, env=env, servers=services.processes(), report=terminal.warn)
        stack.callback(supervisor.stop, hurry=requests.is_urgent)
        with terminal.step("Agents, worker, scheduler, web"):
            registration = chores.begin(REGISTRATION)
            supervisor.start(process_table(options, port))
            _wait_until_ready(options, port, supervisor, requests)
            said = chores.finish(registration)
        for line in said:
            terminal.say(f"    {line}")
        terminal.welcome(options, port)
        _watch(supervisor, requests)


def _start_services(stack: contextlib.ExitStack, options: Options, home: Home) -> Services:
    needs_postgres, needs_valkey = options.database_url is None, options.redis_url is None
    embedded = running_services(home, postgres=needs_postgres, valkey=needs_valkey)
    label = " and ".join(
        name for name, needed in (("PostgreSQL", needs_postgres), ("Valkey", needs_valkey)) if needed
    )
    with terminal.step(label) if label else contextlib.nullcontext():
        return stack.enter_context(embedded)


def _owner_env(options: Options, services: Services) -> dict[str, str]:
    """Every process reads DATABASE_URL; for the owner's chores, another role stands behind that name."""
    url = services.postgres.owner_url if services.postgres else options.owner_url
    return {"DATABASE_URL": url, "DATABASE_OWNER_URL": url} if url else {}


def _watch(supervisor: Supervisor, requests: StopRequests) -> None:
    while True:
        requests.raise_if_asked()
        supervisor.check()
        time.sleep(POLL_SECONDS)


def product_env(environment: Mapping[str, str], options: Options, home: Home, port: int) -> dict[str, str]:
    """The environment of every process of the product; the servers' addresses are added to it."""
    return dict(environment) | {
        "COUNTERSIGN_DEMO": "1" if options.demo else "0",
        "COUNTERSIGN_DEMO_PASSWORD": options.demo_password,
        "COUNTERSIGN_HOME": str(home.path),
        "COUNTERSIGN_SECRET_KEY": options.secret_key or _made_secret_key(home),
        "DJANGO_SETTINGS_MODULE": "reviewer.config.settings",
        "HOST": options.host,
        # Without it, a checkpoint could make the process import what it names.
        "LANGGRAPH_STRICT_MSGPACK": "true",
        "PORT": str(port),
        "PYTHONUNBUFFERED": "1",
    }


def _made_secret_key(home: Home) -> str:
    key = home.read(KEY_FILE)
    if not key:
        key = secrets.token_urlsafe(64)
        home.write_private(KEY_FILE, key)
    return key


def _wait_until_ready(options: Options, port: int, supervisor: Supervisor, requests: StopRequests) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not is_ready(options, port):
        requests.raise_if_asked()
        supervisor.check()
        if time.monotonic() > deadline:
            raise LaunchError(
                f"Countersign was not ready within {READY_SECONDS:.0f} s; see {options.home}/logs."
            )
        time.sleep(POLL_SECONDS)


def is_ready(options: Options, port: int) -> bool:
    """Ask the product's own /readyz, under a name that it answers to."""
    headers = {"Host": options.allowed_host} if options.allowed_host else {}
    connection = http.client.HTTPConnection(terminal.reachable_host(options), port, timeout=5)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/readyz", headers=headers)
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
