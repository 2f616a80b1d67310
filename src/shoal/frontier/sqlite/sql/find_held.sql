SELECT json_group_array(json_array(id, line, site)) FROM task WHERE state IN (1, 3) AND state = 3 AND run = :run
