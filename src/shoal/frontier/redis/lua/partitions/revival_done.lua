-- needs: prelude
call('SREM', base .. 'revived', ask[4].run)
return true
