-- The page that a task is for, as one asks about it: without credentials. Null = it is for something else.
CREATE FUNCTION page_of(_url text, _extra text) RETURNS text
LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF _extra ~ '"(kind|method|body)"' AND (
        coalesce(_extra::json ->> 'kind', 'page') <> 'page' OR coalesce(_extra::json ->> 'method', 'GET') <> 'GET'
        OR _extra::json ->> 'body' IS NOT NULL
    ) THEN
        RETURN NULL;
    END IF;
    RETURN regexp_replace(accepted_url(_url, _extra), '^([a-z]+://)[^/]*@', '\1');
END
$$;
