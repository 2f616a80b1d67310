"""What `import shoal` offers is exactly what is promised."""

import subprocess
import sys
import tomllib
from pathlib import Path

import shoal
import shoal.errors

PROMISED = [
    "AsyncClient",
    "AsyncOrchestrator",
    "BadScraper",
    "BadSettings",
    "BadTarget",
    "BadURL",
    "BadWebhook",
    "BasicAuth",
    "BeingMoved",
    "CannotUnseal",
    "Client",
    "DigestAuth",
    "Drop",
    "Duration",
    "Element",
    "EngineBroken",
    "EngineError",
    "EngineFull",
    "EngineRefused",
    "EngineUnavailable",
    "FormFile",
    "GatewayError",
    "GatewayUnavailable",
    "Hop",
    "Job",
    "JobFailed",
    "JobItem",
    "JobUnfinished",
    "LeaseClient",
    "LeaseOptions",
    "Matches",
    "NeedsAnotherLease",
    "NoStore",
    "Orchestrator",
    "Page",
    "PageTooComplex",
    "RefusedURL",
    "Request",
    "RequestRefused",
    "Retry",
    "Route",
    "RunResult",
    "RunStatus",
    "Scraper",
    "ShoalError",
    "Sitemap",
    "StartRefused",
    "Table",
    "TooLate",
    "TorFailed",
    "UnknownJob",
    "UnknownRun",
    "Unstorable",
    "UsageError",
    "__version__",
    "open_leases",
    "verify_webhook",
    "webhook_secret",
]


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(shoal.__all__) == PROMISED
    assert all(hasattr(shoal, name) for name in PROMISED)
    own = {name for name, value in vars(shoal).items() if getattr(value, "__module__", "").startswith("shoal")}
    assert {name for name in own if not name.startswith("_")} <= set(PROMISED)


def test_every_error_that_shoal_raises_on_purpose_can_be_caught_by_its_public_name() -> None:
    raised = {
        name
        for name, value in vars(shoal.errors).items()
        if isinstance(value, type) and issubclass(value, shoal.errors.ShoalError | shoal.errors.Signal)
    }
    assert raised - {"Signal"} <= set(shoal.__all__), "Signal is a base and nothing to catch"


def test_the_version_is_that_of_the_package() -> None:
    pyproject = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    assert shoal.__version__ == pyproject["project"]["version"]


def test_importing_shoal_loads_nothing_that_a_small_scraper_does_not_need() -> None:
    heavy = "{'pydantic', 'lxml', 'parsel', 'aiohttp', 'typer', 'sqlite3'}"
    program = f"import shoal, sys; print(sorted({heavy} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"
