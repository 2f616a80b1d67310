-- The lane and the pool that a word means: a lane, and behind chr(31) a pool where it is not the usual one.
CREATE FUNCTION berth(_word text, _usual text, OUT lane text, OUT pool text)
LANGUAGE sql IMMUTABLE
AS $$
    SELECT split_part(_word, chr(31), 1), coalesce(nullif(split_part(_word, chr(31), 2), ''), _usual)
$$;
