SELECT used FROM quota WHERE owner = :owner AND resets_at = :resets_at
