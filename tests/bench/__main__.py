"""Start one product of the benchmark's own, and measure the subjects that were asked for on it."""

import importlib
import os
import sys

import django

from tests.bench.figures import heading
from tests.bench.product import Product, running_product

SUBJECTS = ("runtime", "click", "throughput", "spent", "cards")


def main() -> None:
    wanted = sys.argv[1:] or list(SUBJECTS)
    unknown = [name for name in wanted if name not in SUBJECTS]
    if unknown:
        sys.exit(f"There is no subject {unknown[0]}; there are {', '.join(SUBJECTS)}.")
    with running_product() as product:
        os.environ.update(product.environment())
        django.setup()
        for name in wanted:
            _measure(name, product)


def _measure(name: str, product: Product) -> None:
    subject = importlib.import_module(f"tests.bench.{name}")  # it reads Django's settings: not before now
    heading((subject.__doc__ or name).partition("\n")[0])
    subject.measure(product)


if __name__ == "__main__":
    main()
