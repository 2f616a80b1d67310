SELECT name, body FROM record WHERE kind = :kind
