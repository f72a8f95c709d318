"""The Python types behind samples: what the agent's library checks an answer with at resume.

Each one's own JSON schema is the sample's, which ``test_every_branch`` asserts.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, create_model
from typing_extensions import TypedDict


class Verdict(BaseModel):
    """Reviewer verdict"""

    model_config = ConfigDict(extra="forbid")
    score: int = Field(ge=1, le=5, description="1 (bad) … 5 (good)")
    comment: str = Field(title="Why?", min_length=10, examples=["Looks good because…"])
    confident: bool
    categories: set[Literal["tone", "facts", "policy"]] = Field(min_length=1)


class Card(BaseModel):
    kind: Literal["card"]
    number: Annotated[str, Field(min_length=12, max_length=19)]
    cvc: Annotated[str, Field(pattern=r"^\d{3,4}$")]


class Address(BaseModel):
    street: str
    city: str
    zip: Annotated[str, Field(pattern=r"^\d{5}$")]
    country: str = "DE"


class Iban(BaseModel):
    kind: Literal["iban"]
    iban: str
    bic: str | None = None


class Wallet(BaseModel):
    kind: Literal["apple", "google"]
    token: str


class Node(BaseModel):
    name: str
    left: Node | None = None
    right: Node | None = None


class Plan(BaseModel):
    steps: list[dict[str, Any]]
    meta: dict[str, Plan] = {}
    weights: dict[str, float] = {}


class Opt(BaseModel):
    name: str
    when: dt.date | None = None
    amount: Decimal = Decimal(1)
    tags: list[str] = []


class TD(TypedDict, total=False):
    a: int


class Attendee(BaseModel):
    name: str = Field(min_length=1)
    email: str = Field(json_schema_extra={"format": "email"})
    role: Literal["required", "optional"] = "required"


class Filter(BaseModel):
    op: Literal["and", "or", "eq"]
    field: str | None = None
    value: int | float | str | bool | None = None
    children: list[Filter] = []


class Meeting(BaseModel):
    title: str
    start: dt.datetime
    day: dt.date | None = None
    at: dt.time | None = None
    duration: int = Field(default=30, ge=5, le=480, multiple_of=5)
    attendees: list[Attendee] = Field(min_length=1, max_length=20)
    location: Address | None = None
    calendar_id: uuid.UUID
    tags: set[str] = set()


class Query(BaseModel):
    table: str
    where: Filter
    limit: int = Field(default=100, ge=1, le=1000)


class Payment(BaseModel):
    amount: Decimal
    method: Card | Iban | Wallet
    split: list[Annotated[Card | Iban, Field(discriminator="kind")]] = []


class Shell(BaseModel):
    argv: list[str] = Field(min_length=1)
    cwd: str = "/"
    timeout: float = Field(default=30.0, gt=0, le=600)
    stdin: bytes | None = None
    env: dict[str, str | None] | None = None
    point: tuple[int, int] = (0, 0)
    big: int = 0
    url: HttpUrl | None = None


NASTY: Any = create_model(
    "Nasty",
    a=(str, Field(alias="a.b[0]/~c", title="A.B[0]/~C")),
    proto=(str, Field(default="x", alias="__proto__", title="Proto")),
    empty=(int, Field(default=0, alias="", title="")),
    script=(
        str,
        Field(
            default="v",
            alias="<script>alert(1)</script>",
            title="<img src=x onerror=alert(1)>",
            description="{{constructor.constructor('alert(1)')()}} <b>x</b>",
        ),
    ),
    size=(int, 1),
    length=(int, 2),
    action=(str, "submit"),
)

ANSWERS: dict[str, Any] = {
    "12_custom_verdict": Verdict,
    "13_custom_bare_string": Annotated[str, Field(min_length=1)],
    "14_custom_bare_bool": bool,
    "15_custom_union_no_discriminator": Card | Address | list[int] | str | None,
    "16_custom_recursive_root": Node,
    "18_custom_map_of_self": Plan,
    "19_custom_nasty_names": NASTY,
    "call_raw_int": int,
    "call_raw_literal": Literal["yes", "no"],
    "call_raw_pydantic": Opt,
    "call_raw_str_optional": str | None,
    "call_raw_typeddict": TD,
}
ARGUMENTS: dict[str, Any] = {
    "03_meeting_nested_arrays": Meeting,
    "05_query_recursive": Query,
    "06_pay_nested_discriminator": Payment,
    "11_shell_tuple_float_bigint": Shell,
}
