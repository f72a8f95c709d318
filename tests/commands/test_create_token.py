"""``create_token`` prints a key that opens the API, once."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.cast import Cast


def test_the_printed_token_opens_the_api(cast: Cast) -> None:
    out = StringIO()
    call_command("create_token", "reviewer", name="my script", stdout=out)
    secret = out.getvalue().strip()
    response = Client().get("/api/v1/tasks", headers={"authorization": f"Bearer {secret}"})
    assert response.status_code == 200
    assert cast.reviewer.api_tokens.get().name == "my script"


def test_an_unknown_account_gets_no_token(cast: Cast) -> None:
    with pytest.raises(CommandError, match="no active user named nobody"):
        call_command("create_token", "nobody")


def test_a_person_who_left_gets_no_token(cast: Cast) -> None:
    cast.reviewer.is_active = False
    cast.reviewer.save()
    with pytest.raises(CommandError, match="no active user named reviewer"):
        call_command("create_token", "reviewer")
