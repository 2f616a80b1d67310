-- How late a request may begin, where others are to come at a known distance from it: a part of the shortest pace.
CREATE FUNCTION start_window(_pace bigint, _site_delay bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE
AS $$
    SELECT CASE WHEN _pace = 0 AND _site_delay = 0 THEN 0
                ELSE greatest({{START_WINDOW_LEAST}}, least(
                    coalesce(least(nullif(_pace, 0), nullif(_site_delay, 0)), 0) / {{START_WINDOW_SHARE}},
                    {{START_WINDOW_MOST}})) END
$$;
