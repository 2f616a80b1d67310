-- needs: prelude
-- Forget a stream. What is noted of its end finds nothing then, as numbers are never used twice.
call('UNLINK', base .. 'n:' .. ask[4].stream)
