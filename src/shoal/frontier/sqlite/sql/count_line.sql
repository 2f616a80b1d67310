UPDATE line SET waiting = waiting + :waiting, leased = leased + :leased WHERE id = :line
