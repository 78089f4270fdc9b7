/// Histories and directories. Rows and parts are opaque to the shared store: of a history's row it knows the number and the call,
/// of a part nothing.
extension SharedStoreScript {
  var historyBody: String {
    switch self {
    // KEYS: history, where. ARGV: call, row without its {, most rows, milliseconds. → number or nothing, where the user's devices
    // are.
    case .addHistory:
      """
      local rows = redis.call('LRANGE', KEYS[1], 0, -1)
      local function number(row) return row and tonumber(string.match(row, '^{"n":(%d+)')) or 0 end
      for _, row in ipairs(rows) do
        if string.find(row, '"c":"' .. ARGV[1] .. '"', 1, true) then return {'', {}} end
      end
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      local id = math.max(now, number(rows[1]) + 1)
      if id > 9007199254740991 then id = now end
      redis.call('LPUSH', KEYS[1], '{"n":' .. string.format('%.0f', id) .. ',' .. ARGV[2])
      local count = math.min(#rows, tonumber(ARGV[3]) - 1)
      while count > 0 and number(rows[count]) < now - tonumber(ARGV[4]) do count = count - 1 end
      redis.call('LTRIM', KEYS[1], 0, count)
      redis.call('PEXPIRE', KEYS[1], ARGV[4])
      return {string.format('%.0f', id), redis.call('HVALS', KEYS[2])}
      """
    // KEYS: history. ARGV: upper bound of the numbers or 0, most rows, milliseconds. → rows, 1 if there are more.
    case .history:
      """
      local time = redis.call('TIME')
      local oldest = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[3])
      local out, before, more = {}, tonumber(ARGV[1]), 0
      for _, row in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
        local id = tonumber(string.match(row, '^{"n":(%d+)')) or 0
        if id >= oldest and (before == 0 or id < before) then
          if #out == tonumber(ARGV[2]) then
            more = 1
            break
          end
          out[#out + 1] = row
        end
      end
      return {out, tostring(more)}
      """
    // KEYS: history.
    default:
      """
      local count = redis.call('LLEN', KEYS[1])
      redis.call('DEL', KEYS[1])
      return count
      """
    }
  }

  var directoryBody: String {
    switch self {
    // KEYS: sequence, latest. ARGV: since which version, most. → epoch, highest version ever, directories and versions, 1 if
    // there are more.
    case .directories:
      """
      local most = tonumber(ARGV[2])
      local rows = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
      local more = #rows > 2 * most and 1 or 0
      local out = {}
      for n = 1, math.min(#rows, 2 * most), 2 do
        out[n], out[n + 1] = rows[n], string.format('%.0f', tonumber(rows[n + 1]))
      end
      return {redis.call('HGET', KEYS[2], 'epoch') or '', redis.call('HGET', KEYS[2], 'last') or '0', out, more}
      """
    // KEYS: current, heads. ARGV: directory. → head, version, time.
    case .directoryHead:
      """
      local time = redis.call('TIME')
      return {redis.call('HGET', KEYS[2], ARGV[1]) or '', redis.call('HGET', KEYS[1], ARGV[1]) or '0',
        string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))}
      """
    // KEYS: parts. ARGV: milliseconds, the content of each.
    case .stageParts:
      """
      for n = 1, #KEYS do redis.call('SET', KEYS[n], ARGV[n + 1], 'PX', ARGV[1]) end
      return 1
      """
    // KEYS: dropped. ARGV: most, milliseconds, prefix of parts. → how many still wait.
    case .expireParts:
      """
      local most = tonumber(ARGV[1])
      for _, name in ipairs(redis.call('LRANGE', KEYS[1], -most, -1)) do
        redis.call('PEXPIRE', ARGV[3] .. name, ARGV[2])
      end
      redis.call('LTRIM', KEYS[1], 0, -most - 1)
      return redis.call('LLEN', KEYS[1])
      """
    // KEYS: current, heads, sequence, latest, dropped, parts to keep. ARGV: directory, expected version, new version, head,
    // milliseconds until parts expire if one is missing, most directories, an epoch, names of dropped parts. → outcome, version
    // until now, highest ever.
    default:
      """
      local now = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') or 0
      local last = tonumber(redis.call('HGET', KEYS[4], 'last') or '0') or 0
      local version = tonumber(ARGV[3])
      local function outcome(code) return {code, string.format('%.0f', now), string.format('%.0f', last)} end
      if now ~= tonumber(ARGV[2]) then return outcome(0) end
      if version <= last then return outcome(2) end
      if now == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[6]) then return outcome(4) end
      if type(redis.pcall('LLEN', KEYS[5])) ~= 'number' then redis.call('DEL', KEYS[5]) end
      for n = 6, #KEYS do
        if redis.call('PERSIST', KEYS[n]) == 0 then
          for m = 6, n - 1 do redis.call('PEXPIRE', KEYS[m], ARGV[5]) end
          return outcome(3)
        end
      end
      for n = 8, #ARGV, 1000 do redis.call('LPUSH', KEYS[5], unpack(ARGV, n, math.min(n + 999, #ARGV))) end
      redis.call('HSET', KEYS[2], ARGV[1], ARGV[4])
      redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
      redis.call('ZADD', KEYS[3], ARGV[3], ARGV[1])
      redis.call('HSET', KEYS[4], 'last', ARGV[3])
      if not redis.call('HGET', KEYS[4], 'epoch') then redis.call('HSET', KEYS[4], 'epoch', ARGV[7]) end
      return outcome(1)
      """
    }
  }
}
