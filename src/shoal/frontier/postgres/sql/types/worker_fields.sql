-- Who a worker is. `duties`: what it takes on, as JSON.
CREATE TYPE worker_fields AS (
    worker_id text,
    machine text,
    pid bigint,
    pid_started bigint,
    notebook text,
    duties text
);
