-- What is remembered of a task that ends otherwise than done, as a row of `ending`; nothing, if it is not for a page.
CREATE FUNCTION ending_of(_run int, _url text, _extra text, _state text, _ended_at bigint, _reason text)
RETURNS TABLE (ended_at bigint, run int, name bytea, state text, reason text, url text)
LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
    _page text := page_of(_url, _extra);
BEGIN
    IF _page IS NOT NULL THEN
        RETURN QUERY
        SELECT _ended_at, _run, substr(sha256(convert_to(_page, 'UTF8')), 1, 8), _state, _reason,
               nullif(accepted_url(_url, _extra), _page);
    END IF;
END
$$;
