-- What settlements leave behind besides their results: notes, entries of the cache, and what they saved. `…_of`: the
-- position of the settlement that each comes from.
CREATE TYPE byproducts AS (
    note_of int[],
    note_stream text[],
    note_body bytea[],
    note_ttl bigint[],
    entry_of int[],
    entry_key text[],
    entry_value bytea[],
    entry_ttl bigint[],
    saved_of int[],
    saved_requests int[],
    saved_bytes bigint[]
);
