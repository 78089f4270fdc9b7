/// Lua scripts for what must be one step in the shared store. They use only what Redis 6.2 to 8 and Valkey 7.2 to 9 have in
/// common; all keys of a script are in one slot. Time is the shared store's own.
enum SharedStoreScript: String, CaseIterable, Sendable {
  case renew, endLease, enter, update, leave, locate, register, claim, reaped, release, admit, consumeQuota, append, record
  case addHistory, history, forgetHistory, directories, directoryHead, stageParts, commit, expireParts, putGrants, grants

  var source: String { Self.head + body }

  /// Before Redis 7 a script that has read the time may write only if its effects are replicated instead of its text.
  static let head = "if redis.replicate_commands then redis.replicate_commands() end\n"

  private var body: String {
    switch self {
    // KEYS: names, this node's lease. ARGV: node, incarnation, value, milliseconds, prefix of leases, names in one read, a lease
    // without our signature. → 1 if the lease was valid, leases, time, the lease that prevents ours.
    case .renew:
      """
      local own = redis.call('GET', KEYS[2])
      local free, had = not own, 0
      if own then
        local ok, lease = pcall(cjson.decode, own)
        if ok and type(lease) == 'table' and lease.i == ARGV[2] then had = 1 end
        free = not ok or type(lease) ~= 'table' or had == 1 or own == ARGV[7]
      end
      if free then
        redis.call('SET', KEYS[2], ARGV[3], 'PX', ARGV[4])
        redis.call('SADD', KEYS[1], ARGV[1])
      end
      local names = redis.call('SMEMBERS', KEYS[1])
      local step = tonumber(ARGV[6])
      local out = {}
      for first = 1, #names, step do
        local keys = {}
        for n = first, math.min(first + step - 1, #names) do keys[#keys + 1] = ARGV[5] .. names[n] end
        local values = redis.call('MGET', unpack(keys))
        for n = 1, #keys do
          if values[n] then out[#out + 1] = values[n] else redis.call('SREM', KEYS[1], names[first + n - 1]) end
        end
      end
      local time = redis.call('TIME')
      return {had, out, string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), free and '' or own}
      """
    // KEYS: names, lease. ARGV: node, incarnation.
    case .endLease:
      """
      local own = redis.call('GET', KEYS[2])
      if not own then return 0 end
      local ok, lease = pcall(cjson.decode, own)
      if ok and type(lease) == 'table' and lease.i ~= ARGV[2] then return 0 end
      redis.call('DEL', KEYS[2])
      redis.call('SREM', KEYS[1], ARGV[1])
      return 1
      """
    // KEYS: where, calls, devices. ARGV: device, session, value without its {, most devices, since when or 0, a value without our
    // signature. → the location before, calls, device, since when, 1 if the session before is newer and stays.
    case .enter:
      """
      local before = redis.call('HGET', KEYS[1], ARGV[1])
      if before == ARGV[6] then before = false end
      local since, known, session = tonumber(ARGV[5]), 0, nil
      if before then
        known = tonumber(string.match(before, '^{"t":(%d+)')) or 0
        local ok, location = pcall(cjson.decode, before)
        if ok and type(location) == 'table' then session = location.s end
      end
      if since > 0 and known > since and session ~= ARGV[2] then
        return {before, redis.call('HGETALL', KEYS[2]), redis.call('HGET', KEYS[3], ARGV[1]), ARGV[5], 1}
      end
      if session == ARGV[2] and known > 0 then since = known end
      if since == 0 then
        local time = redis.call('TIME')
        since = time[1] * 1000 + math.floor(time[2] / 1000)
      end
      local text = string.format('%.0f', since)
      redis.call('HSET', KEYS[1], ARGV[1], '{"t":' .. text .. ',' .. ARGV[3])
      local over = redis.call('HLEN', KEYS[1]) - tonumber(ARGV[4])
      if over > 0 then
        for _, device in ipairs(redis.call('HKEYS', KEYS[1])) do
          if over > 0 and device ~= ARGV[1] then
            redis.call('HDEL', KEYS[1], device)
            over = over - 1
          end
        end
      end
      return {before, redis.call('HGETALL', KEYS[2]), redis.call('HGET', KEYS[3], ARGV[1]), text, 0}
      """
    // KEYS: where. ARGV: device, session, value without its {.
    case .update:
      """
      local old = redis.call('HGET', KEYS[1], ARGV[1])
      if not old then return 0 end
      local ok, location = pcall(cjson.decode, old)
      if not ok or type(location) ~= 'table' or location.s ~= ARGV[2] then return 0 end
      redis.call('HSET', KEYS[1], ARGV[1], (string.match(old, '^{"t":%d+,') or '{') .. ARGV[3])
      return 1
      """
    // KEYS: where. ARGV: device, session.
    case .leave:
      """
      local old = redis.call('HGET', KEYS[1], ARGV[1])
      if not old then return 0 end
      local ok, location = pcall(cjson.decode, old)
      if ok and type(location) == 'table' and location.s ~= ARGV[2] then return 0 end
      redis.call('HDEL', KEYS[1], ARGV[1])
      return 1
      """
    // KEYS: where, devices, calls. ARGV: call or nothing, incarnation, value without its {, most calls.
    case .locate:
      """
      if ARGV[1] ~= '' then
        local rank, highest, lowest, oldest, count, known = nil, 0, math.huge, nil, 0, false
        local calls = redis.call('HGETALL', KEYS[3])
        for n = 1, #calls, 2 do
          local r = tonumber(string.match(calls[n + 1], '^{"n":(%d+)')) or 0
          if calls[n] == ARGV[1] then
            known = true
            local ok, location = pcall(cjson.decode, calls[n + 1])
            if ok and type(location) == 'table' and location.i == ARGV[2] and r > 0 then rank = r end
          elseif r < lowest then
            lowest, oldest = r, calls[n]
          end
          if r > highest then highest = r end
          count = count + 1
        end
        if not known and oldest and count >= tonumber(ARGV[4]) then redis.call('HDEL', KEYS[3], oldest) end
        redis.call('HSET', KEYS[3], ARGV[1], string.format('{"n":%d,', rank or highest + 1) .. ARGV[3])
      end
      return {redis.call('HGETALL', KEYS[1]), redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[3])}
      """
    // KEYS: devices. ARGV: most devices, then for each change device, time of the last change or nothing, value, a value without
    // our signature. → devices that were not changed, and their values.
    case .register:
      """
      local function word(value) return tonumber(string.match(value, '^{"w":(%-?%d+)')) end
      local kept = {}
      for n = 2, #ARGV, 4 do
        local old = redis.call('HGET', KEYS[1], ARGV[n])
        if old == ARGV[n + 3] then old = false end
        if ARGV[n + 1] == '' then
          local revoked = false
          if old then
            local ok, device = pcall(cjson.decode, old)
            revoked = ok and type(device) == 'table' and type(device.x) == 'number'
          end
          if not revoked then redis.call('HDEL', KEYS[1], ARGV[n]) else kept[#kept + 1], kept[#kept + 2] = ARGV[n], old end
        else
          local before = old and word(old)
          if not before or before <= tonumber(ARGV[n + 1]) then
            redis.call('HSET', KEYS[1], ARGV[n], ARGV[n + 2])
          else
            kept[#kept + 1], kept[#kept + 2] = ARGV[n], old
          end
        end
      end
      local over = redis.call('HLEN', KEYS[1]) - tonumber(ARGV[1])
      while over > 0 do
        local all = redis.call('HGETALL', KEYS[1])
        local oldest, least = nil, math.huge
        for n = 1, #all, 2 do
          local w = word(all[n + 1]) or 0
          if w < least then oldest, least = all[n], w end
        end
        redis.call('HDEL', KEYS[1], oldest)
        over = over - 1
      end
      return kept
      """
    // KEYS: the claim. ARGV: claimant, milliseconds, 1 to renew, a claim without our signature.
    case .claim:
      """
      local held = redis.call('GET', KEYS[1])
      if held == ARGV[4] then held = false end
      if held and held ~= ARGV[1] then return {0, held} end
      if not held or ARGV[3] == '1' then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
      return {1, ARGV[1]}
      """
    // KEYS: calls of an incarnation, claim of this call. ARGV: call, claimant, milliseconds.
    case .reaped:
      """
      redis.call('HDEL', KEYS[1], ARGV[1])
      redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
      return 1
      """
    // KEYS: the claim. ARGV: claimant.
    case .release:
      """
      if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
      return 0
      """
    // KEYS: calls of the trunk. ARGV: incarnation, most.
    case .admit:
      """
      local sum = 0
      for _, count in ipairs(redis.call('HVALS', KEYS[1])) do sum = sum + math.max(0, tonumber(count) or 0) end
      if sum >= tonumber(ARGV[2]) then return 0 end
      local own = math.max(0, tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') or 0)
      redis.call('HSET', KEYS[1], ARGV[1], string.format('%d', own + 1))
      return 1
      """
    // KEYS: times. ARGV: most, milliseconds.
    case .consumeQuota:
      """
      local time = redis.call('TIME')
      local now = time[1] * 1000000 + time[2]
      redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[2] * 1000))
      local count = redis.call('ZCARD', KEYS[1])
      if count >= tonumber(ARGV[1]) then return 0 end
      redis.call('ZADD', KEYS[1], string.format('%.0f', now), string.format('%.0f-%d', now, count))
      redis.call('PEXPIRE', KEYS[1], ARGV[2])
      return 1
      """
    // KEYS: stream, mark of the call. ARGV: record, milliseconds, most records.
    case .append:
      """
      if redis.call('GET', KEYS[2]) then return 0 end
      local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[3], '*', 'record', ARGV[1])
      redis.call('SET', KEYS[2], id, 'PX', ARGV[2])
      return 1
      """
    // KEYS: stream, mark of the call, which names its entry.
    case .record:
      """
      local id = redis.call('GET', KEYS[2])
      if not id or not string.match(id, '^%d+%-%d+$') then return false end
      local found = redis.call('XRANGE', KEYS[1], id, id)
      local fields = found[1] and found[1][2] or {}
      for n = 1, #fields, 2 do
        if fields[n] == 'record' then return fields[n + 1] end
      end
      return false
      """
    case .addHistory, .history, .forgetHistory: historyBody
    case .directories, .directoryHead, .stageParts, .commit, .expireParts: directoryBody
    case .putGrants, .grants: grantsBody
    }
  }

  /// At connect. KEYS: marker. ARGV: a random text. → whether the marker existed, and the marker: a different one shows that the
  /// shared store was flushed, or is another.
  static let mark =
    head + """
      local old = redis.call('GET', KEYS[1])
      if old then return old end
      redis.call('SET', KEYS[1], ARGV[1])
      return ARGV[1]
      """

  /// At connect: tries every command that the scripts use, on a key of its own. KEYS: trial. ARGV: channel. → the commands that
  /// the user may not run.
  static let rights =
    head + """
      local k, refused = KEYS[1], {}
      local trials = {
        {'DEL', k}, {'SET', k, '1', 'PX', '1000'}, {'GET', k}, {'MGET', k}, {'PEXPIRE', k, '1000'}, {'DEL', k},
        {'HSET', k, 'a', 'b'}, {'HGET', k, 'a'}, {'HGETALL', k}, {'HVALS', k}, {'HKEYS', k}, {'HLEN', k}, {'HDEL', k, 'a'}, {'DEL', k},
        {'SADD', k, 'a'}, {'SMEMBERS', k}, {'SREM', k, 'a'}, {'DEL', k},
        {'ZADD', k, '1', 'a'}, {'ZCARD', k}, {'ZRANGEBYSCORE', k, '(1', '+inf', 'LIMIT', '0', '1'},
        {'ZREM', k, 'b'}, {'ZREMRANGEBYSCORE', k, '-inf', '+inf'}, {'DEL', k},
        {'LPUSH', k, 'a'}, {'LRANGE', k, '0', '-1'}, {'LLEN', k}, {'LTRIM', k, '0', '0'}, {'PERSIST', k}, {'DEL', k},
        {'XADD', k, 'MAXLEN', '~', '10', '*', 'a', 'b'}, {'XRANGE', k, '-', '+', 'COUNT', '1'}, {'DEL', k}, {'TIME'}, {'PUBLISH', ARGV[1], ''},
      }
      for _, trial in ipairs(trials) do
        local reply = redis.pcall(unpack(trial))
        local said = type(reply) == 'table' and reply.err
        if said and (string.find(said, 'NOPERM', 1, true) or string.find(said, 'ermission', 1, true)
          or string.find(said, "can't run this command", 1, true) or string.find(said, 'Unknown', 1, true)
          or string.find(said, 'unknown', 1, true)) then
          refused[#refused + 1] = trial[1]
        end
      end
      return refused
      """
}
