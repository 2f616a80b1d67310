UPDATE line SET held = :held WHERE queue = :queue
