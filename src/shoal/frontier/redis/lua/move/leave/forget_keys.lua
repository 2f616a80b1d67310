-- needs: prelude
-- Some of the sets of keys that a run has seen go.
for _, bucket in ipairs(ask[4].buckets) do
    call('UNLINK', base .. 's:' .. ask[4].number .. ':' .. bucket)
end
return true
