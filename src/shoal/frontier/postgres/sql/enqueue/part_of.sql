-- In a job, the group of a task ('' = none); in other runs null.
CREATE FUNCTION part_of(_is_job boolean, _extra text) RETURNS text
LANGUAGE sql IMMUTABLE
AS $$ SELECT CASE WHEN _is_job THEN coalesce(_extra::json ->> 'group', '') END $$;
