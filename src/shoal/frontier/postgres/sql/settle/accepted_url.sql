-- The URL that a task was let in with: not where a redirect within its site has led it since. A redirect to another site
-- has made another task, whose first URL is of the site that it came from.
CREATE FUNCTION accepted_url(_url text, _extra text) RETURNS text
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    _first text;
BEGIN
    IF _extra LIKE '%"first\_url"%' THEN
        _first := _extra::json ->> 'first_url';
    END IF;
    RETURN CASE WHEN substring(_first from '^[a-z]+://(?:[^/]*@)?([^/]*)') = substring(_url from '^[a-z]+://(?:[^/]*@)?([^/]*)')
                THEN _first ELSE _url END;
END
$$;
