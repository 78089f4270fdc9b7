/// Histories and directories. Rows and parts are the nodes' own: of a history's row the engine knows its number and its call, of a part
/// nothing.
extension EngineScript {
  var historyBody: String {
    switch self {
    // KEYS: history, where. ARGV: call, row without its {, most rows, milliseconds. → number or nothing, where the user's devices are.
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
    // KEYS: history. ARGV: below which number or 0, most rows, milliseconds. → rows, 1 if there are more.
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
    // KEYS: versions, state, order. ARGV: since which place, most. → epoch, highest version ever, place, scopes and versions, 1 if there are more.
    case .directories:
      """
      local most = tonumber(ARGV[2])
      local rows = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
      local more = #rows > 2 * most and 1 or 0
      local out, place = {}, ARGV[1]
      for n = 1, math.min(#rows, 2 * most), 2 do
        out[n], out[n + 1], place = rows[n], redis.call('HGET', KEYS[1], rows[n]) or '0', rows[n + 1]
      end
      return {redis.call('HGET', KEYS[2], 'epoch') or '', redis.call('HGET', KEYS[2], 'last') or '0', place, out, more}
      """
    // KEYS: versions, changes. ARGV: scope, since which version, how many of these not, most. → parts, version.
    case .changes:
      """
      local parts = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[2], '+inf', 'LIMIT', ARGV[3], ARGV[4])
      return {parts, redis.call('HGET', KEYS[1], ARGV[1]) or '0'}
      """
    // KEYS: versions, parts. ARGV: scope, which one. → head and part, version.
    case .part:
      """
      local out = {}
      local head = redis.call('HGET', KEYS[2], 'head')
      local part = redis.call('HGET', KEYS[2], ARGV[2])
      if head then out[1] = head end
      if head and part then out[2] = part end
      return {out, redis.call('HGET', KEYS[1], ARGV[1]) or '0'}
      """
    // KEYS: staged. ARGV: which one, content, milliseconds.
    case .stage:
      """
      redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
      redis.call('PEXPIRE', KEYS[1], ARGV[3])
      return 1
      """
    // KEYS: versions, state, parts, changes, staged, order. ARGV: scope, version that has to be there, new version, how many are staged, change or whole,
    // 1 if it is new, most changes, changes that are kept, most directories, an epoch, the last place as the node knows it. → outcome, version until now, highest ever, last place, changes.
    default:
      """
      local now = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') or 0
      local last = tonumber(redis.call('HGET', KEYS[2], 'last') or '0') or 0
      local place = tonumber(redis.call('HGET', KEYS[2], 'place') or '0') or 0
      local version, staged = tonumber(ARGV[3]), tonumber(ARGV[4])
      local function told(outcome)
        return {outcome, string.format('%.0f', now), string.format('%.0f', last), string.format('%.0f', place),
          redis.call('ZCARD', KEYS[4])}
      end
      if now ~= tonumber(ARGV[2]) or (ARGV[6] == '1' and (version <= last or place ~= tonumber(ARGV[11]))) then return told(0) end
      if redis.call('HLEN', KEYS[5]) ~= staged then return told(3) end
      if now == 0 and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[9]) then return told(4) end
      if ARGV[5] == 'change' then
        if redis.call('ZCARD', KEYS[4]) + staged > tonumber(ARGV[7]) then return told(2) end
        for n = 0, staged - 1 do
          local part = redis.call('HGET', KEYS[5], tostring(n))
          if not part then return told(3) end
          redis.call('ZADD', KEYS[4], ARGV[3], part)
        end
        redis.call('UNLINK', KEYS[5])
      else
        redis.call('UNLINK', KEYS[3])
        redis.call('RENAME', KEYS[5], KEYS[3])
        redis.call('PERSIST', KEYS[3])
        if now == version then
          redis.call('ZREMRANGEBYRANK', KEYS[4], 0, -1 - tonumber(ARGV[8]))
        else
          redis.call('UNLINK', KEYS[4])
        end
      end
      if now ~= version then
        local next = string.format('%.0f', place + 1)
        redis.call('HSET', KEYS[2], 'place', next)
        redis.call('ZADD', KEYS[6], next, ARGV[1])
      end
      redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
      if version > last then redis.call('HSET', KEYS[2], 'last', ARGV[3]) end
      if not redis.call('HGET', KEYS[2], 'epoch') then redis.call('HSET', KEYS[2], 'epoch', ARGV[10]) end
      return told(1)
      """
    }
  }
}
