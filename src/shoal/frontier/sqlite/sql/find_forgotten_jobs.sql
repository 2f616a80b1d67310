SELECT run FROM job WHERE gone_at IS NOT NULL AND gone_at <= :before LIMIT :most
