"""Django's settings. What a deployment may choose is read in ``environment``; the rest is fixed here."""

from __future__ import annotations

import os

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.utils.translation import gettext_lazy as _

from reviewer.config.environment import PROJECT, broker_url, database, read_environment
from reviewer.config.logs import logging_config

ENV = read_environment()

# langgraph reads this once, at import; a process without it would unpack any importable type.
if os.environ.get("LANGGRAPH_STRICT_MSGPACK", "").lower() != "true":
    raise ImproperlyConfigured(
        "LANGGRAPH_STRICT_MSGPACK must be set to true in the environment of every process."
    )

SECRET_KEY = ENV.secret_key
DEBUG = ENV.debug
ALLOWED_HOSTS = list(ENV.allowed_hosts)
CSRF_TRUSTED_ORIGINS = list(ENV.trusted_origins)

INSTALLED_APPS = [
    "servestatic.runserver_nostatic",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.humanize",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "pgtrigger",
    "axes",
    "channels",
    "csp",
    "ninja",
    "reviewer.accounts",
    "agents_runtime",
    "reviewer",
]

MIDDLEWARE = [
    "reviewer.web.connections.replace_dead_connections",
    "django.middleware.security.SecurityMiddleware",
    "reviewer.web.static_files.serve_static_files",
    "django.middleware.common.CommonMiddleware",
    "reviewer.api.programs.answer_programs",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "reviewer.web.errors.ProblemMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "reviewer.config.urls"
ASGI_APPLICATION = "reviewer.config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [PROJECT / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "libraries": {
                "look": "reviewer.web.templatetags.look",
                "pages": "reviewer.web.templatetags.pages",
            },
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "reviewer.web.context.shell",
            ],
            "loaders": None
            if ENV.debug
            else [
                ("django.template.loaders.cached.Loader", ["django.template.loaders.filesystem.Loader"]),
            ],
        },
    },
]
if ENV.debug:
    TEMPLATES[0]["OPTIONS"].pop("loaders")  # type: ignore[attr-defined]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

DATABASE_POOL = 12
REQUEST_THREADS = DATABASE_POOL - 2  # sockets read through a thread of their own, and one connection is spare
DATABASES = {
    "default": database(
        ENV.database_url,
        pool={"min_size": 1, "max_size": DATABASE_POOL, "timeout": 10},
        prepare=ENV.prepare,
    )
}
COUNTERSIGN_PREPARE = ENV.prepare
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": ENV.redis_url}}
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "reviewer.channel_layer.HintLayer",
        # The layer waits five seconds at a time; redis-py's own five-second limit would end the socket.
        "CONFIG": {
            "hosts": [{"address": ENV.redis_url, "socket_timeout": 30}],
            "capacity": 1000,
            "expiry": 30,
        },
    },
}

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "inbox"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 8
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "accounts/locked.html"
AXES_RESET_ON_SUCCESS = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ENV.secure_cookies
SESSION_COOKIE_NAME = "__Host-countersign" if ENV.secure_cookies else f"countersign_{ENV.port}"
CSRF_COOKIE_NAME = "__Host-csrf" if ENV.secure_cookies else f"countersign_csrf_{ENV.port}"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "reviewer.web.errors.no_token"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE_SSL_REDIRECT = ENV.secure_cookies
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 31_536_000 if ENV.secure_cookies else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = ENV.secure_cookies
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ENV.secure_cookies else None
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "manifest-src": [SELF],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    },
}
DATA_UPLOAD_MAX_NUMBER_FIELDS = 8_000  # a card has at most 400 nodes with a handful of names each
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English"))]
LOCALE_PATHS = [PROJECT / "reviewer" / "locale"]
USE_I18N = True
TIME_ZONE = ENV.time_zone
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [PROJECT / "static"]
STATIC_ROOT = ENV.home / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"
        if not DEBUG
        else "django.contrib.staticfiles.storage.StaticFilesStorage",
    },
}

CELERY_BROKER_URL = broker_url(ENV.redis_url)
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "runs"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CONCURRENCY = ENV.worker_concurrency
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker keeps what it has in hand, and puts it back when a child of its dies. kombu would also note it in
# Redis, for others to find in an hour: what a whole worker loses, the sweep finds in seconds.
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 10, "health_check_interval": 10, "ack_emulation": False}
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False

COUNTERSIGN_DESK = "reviewer.intake.Desk"
COUNTERSIGN_AGENTS = list(ENV.agents)
COUNTERSIGN_CARDS = list(ENV.cards)
COUNTERSIGN_MODEL = ENV.model
COUNTERSIGN_SCRIPT_DELAY = ENV.script_delay_ms / 1000  # seconds between two words of the scripted model
COUNTERSIGN_HOME = ENV.home
COUNTERSIGN_DEMO = ENV.demo
COUNTERSIGN_CLAIM_SECONDS = 15 * 60
COUNTERSIGN_STEP_DEADLINE = ENV.step_deadline
COUNTERSIGN_CHECKPOINT_DAYS = ENV.checkpoint_days
COUNTERSIGN_CHECKPOINT_SCHEMA = "langgraph"

LOGGING_CONFIG = None
LOGGING = logging_config(ENV.log_level)

PGTRIGGER_INSTALL_ON_MIGRATE = False
PGTRIGGER_MIGRATIONS = True
