"""The sign-in page."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.contrib.auth.views import LoginView

DEMO_ACCOUNTS = ("reviewer", "reviewer2", "lead", "admin", "auditor", "developer")


class SignInForm(AuthenticationForm):
    """Django's form, which forgets to check the name's length: longer ones cannot be an account's."""

    username = UsernameField(max_length=150)


class SignIn(LoginView):
    """Sign in with name and password; axes counts the tries."""

    template_name = "accounts/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """Add the demo's accounts where there is a demo."""
        context = super().get_context_data(**kwargs)
        context["demo_accounts"] = DEMO_ACCOUNTS if settings.COUNTERSIGN_DEMO else ()
        return context
