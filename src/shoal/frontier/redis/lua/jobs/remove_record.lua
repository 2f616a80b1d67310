-- needs: prelude
-- Forget a document. Answers how many there were of that name.
return call('HDEL', base .. 'rec:' .. ask[4].kind, ask[4].name)
