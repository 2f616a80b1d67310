-- The lane and the pool that a word means: a lane, and behind chr(31) a pool where it is not the usual one. One row; a
-- table, because only such a function becomes a part of the statement that uses it.
CREATE FUNCTION lane_and_pool(_word text, _usual text) RETURNS TABLE (lane text, pool text)
LANGUAGE sql IMMUTABLE ROWS 1
AS $$
    SELECT split_part(_word, chr(31), 1), coalesce(nullif(split_part(_word, chr(31), 2), ''), _usual)
$$;
