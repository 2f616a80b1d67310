DELETE FROM record WHERE kind = :kind AND name = :name
