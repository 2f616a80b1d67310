-- needs: prelude
-- Some of what is known of how pages of a run ended goes.
for _, bucket in ipairs(ask[4].buckets) do
    call('UNLINK', base .. 'e:' .. ask[4].number .. ':' .. bucket)
end
return true
