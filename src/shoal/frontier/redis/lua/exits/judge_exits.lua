-- needs: prelude exit_health
-- What another partition has heard of exits.
known_exits.judge(ask[4].failed, ask[4].well)
known_exits.close()
