-- Whether any task of a site has not ended, or is in somebody's hands.
CREATE FUNCTION is_busy(_site int) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM visit AS v WHERE v.site = _site)
        OR EXISTS (SELECT 1 FROM slot AS k WHERE k.site = _site AND k.live > 0)
        OR EXISTS (SELECT 1 FROM task AS t WHERE t.site = _site AND t.state IN (1, 3));
END
$$;
