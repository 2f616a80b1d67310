DELETE FROM note WHERE id IN (
    SELECT id FROM note WHERE expires_at IS NOT NULL AND expires_at <= :now ORDER BY expires_at LIMIT :most
)
