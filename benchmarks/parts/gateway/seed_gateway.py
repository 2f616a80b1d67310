"""The peer: the smallest gateway that does the job, as the architecture document sketches it.

A FastAPI application, a blocking Redis client, a list as the queue, a key with a time to live for the state of each job
and one for its result. Served by uvicorn: `uvicorn seed_gateway:app`. `REDIS_URL` says where Redis is.
"""

from __future__ import annotations

import json
import os
import uuid
from datetime import datetime
from typing import Any

import redis
from fastapi import FastAPI
from pydantic import BaseModel

KEPT = 3600
PER_ITEM = 3.7

app = FastAPI()
store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


class Cart(BaseModel):
    """What a user wants to have looked up."""

    items: list[str]
    zipcode: str


@app.post("/cart")
async def submit(cart: Cart) -> dict[str, Any]:
    """Push a job, and note that it waits."""
    job_id = str(uuid.uuid4())
    job = {
        "job_id": job_id,
        "items": cart.items,
        "zip_code": cart.zipcode,
        "submitted_at": datetime.now().isoformat(),  # noqa: DTZ005 - as the document has it
        "max_products_per_item": 20,
    }
    store.lpush("scrape_queue", json.dumps(job))
    store.setex(f"status:{job_id}", KEPT, json.dumps({"status": "queued"}))
    return {"job_id": job_id, "status": "queued", "estimated_time": len(cart.items) * PER_ITEM}


@app.get("/results/{job_id}")
async def results(job_id: str) -> dict[str, Any]:
    """The result if there is one, else the state."""
    found = store.get(f"result:{job_id}")
    if found:
        return {"status": "complete", "results": json.loads(found)}
    state = store.get(f"status:{job_id}")
    if state:
        known: dict[str, Any] = json.loads(state)
        return known
    return {"status": "not_found", "message": "Job ID not found or expired"}
