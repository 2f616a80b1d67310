-- needs: prelude
-- What a crash may have left half done: runs whose state has not reached all partitions, and runs that tasks came to
-- after they had ended.
return {call('SRANDMEMBER', base .. 'spread', 100), call('SRANDMEMBER', base .. 'revived', 100)}
