// The named limits of this module; every bound on a queue, table or message stands here.
