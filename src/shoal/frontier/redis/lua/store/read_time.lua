-- needs: prelude
-- What time it is.
return now
