SELECT json_group_array(id) FROM run WHERE state = 'cancelled' AND waiting > 0
