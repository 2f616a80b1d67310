"""What the documents look like, for OpenAPI. The documents themselves are made in `documents`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

CALLBACK = "Where to POST that the job has ended. Only with an API key, whose secret signs the message."

State = Literal["queued", "processing", "complete", "failed", "cancelled"]


class JobRequest(BaseModel):
    """A job for any scraper: with its input, or with URLs for its default handler."""

    model_config = ConfigDict(extra="forbid")

    scraper: str = Field(description="Name of the scraper, as in `GET /scrapers`.")
    input: Any = Field(default=None, description="What the scraper's input model asks for.")
    urls: list[str] | None = Field(default=None, description="Pages to fetch, instead of an input.")
    callback: str | None = Field(default=None, description=CALLBACK)


class RefusalDocument(BaseModel):
    """A URL that will not be fetched, and why."""

    url: str
    reason: str


class AcceptedDocument(BaseModel):
    """The job is stored, and will be worked on."""

    job_id: str
    status: Literal["queued"]
    position: int = Field(description="Place among the jobs of this scraper that have not ended, from 1.")
    estimated_time: int = Field(description="Seconds until the job will have ended, as far as can be told.")
    poll_after: float = Field(description="Seconds after which it is worth asking. It grows with the wait.")
    location: str = Field(description="Where to ask.")
    refused: list[RefusalDocument] | None = Field(default=None, description="URLs that will not be fetched, if any.")


class JobSummary(BaseModel):
    """A job in few words."""

    job_id: str
    status: State
    scraper: str
    progress: str = Field(description="As in `2/3 items completed`: groups, or pages where there are no groups.")
    items: int = Field(description="Items found so far.")
    created_at: str
    ended_at: str | None
    expires_at: str | None = Field(description="When the results go.")


class JobDocument(JobSummary):
    """How a job stands, and its results once it has ended."""

    position: int | None = Field(default=None, description="Place in its queue, from 1; absent once it has ended.")
    estimated_time: int | None = Field(default=None, description="Seconds until it will have ended.")
    poll_after: float | None = Field(default=None, description="Seconds after which it is worth asking again.")
    results: dict[str, list[dict[str, Any]]] | list[dict[str, Any]] | None = Field(
        default=None,
        description="Items by group; a plain list where there are no groups; null = too many, see `results_at`.",
    )
    results_at: str | None = Field(
        default=None, description="Where the items are, if they are too many for one answer."
    )
    error: str | None = Field(default=None, description="Why the job failed.")
    errors: list[RefusalDocument] | None = Field(
        default=None, description="Pages that could not be read, the first few."
    )


class JobList(BaseModel):
    """Jobs, newest first. `next`: goes on where this page ends, as `?before=`; null = that was all."""

    jobs: list[JobSummary]
    next: int | None


class ItemDocument(BaseModel):
    """An item with where it came from."""

    group: str | None
    url: str
    item: dict[str, Any]


class ItemList(BaseModel):
    """Items in the order they came. `next`: goes on where this page ends, as `?cursor=`; null = that was all."""

    items: list[ItemDocument]
    next: int | None


class Offered(BaseModel):
    """A scraper that can be used."""

    name: str
    path: str | None = Field(description="Where its input can be posted; null = by `POST /jobs` only.")
    input: dict[str, Any] | None = Field(description="JSON schema of its input; null = it takes none.")


class HealthDocument(BaseModel):
    """Whether this process can do its work."""

    status: Literal["ok", "no workers"]
    parts: dict[str, Any]


class ProblemDocument(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(extra="allow", title="Problem")

    type: str
    title: str
    status: int
    detail: str
