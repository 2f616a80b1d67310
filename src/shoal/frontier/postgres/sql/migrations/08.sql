-- Floors know which transactions may have been under way.
DELETE FROM line_floor;
ALTER TABLE line_floor ADD COLUMN upto xid8 NOT NULL DEFAULT pg_snapshot_xmax(pg_current_snapshot());
