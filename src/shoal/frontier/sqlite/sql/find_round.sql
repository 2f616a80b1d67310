SELECT json_array(sorted, until) FROM seen_round
