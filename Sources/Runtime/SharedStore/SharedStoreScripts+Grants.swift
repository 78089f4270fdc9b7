/// What login tokens grant: a hash of the users' rows, the order in which they came, and when a token named each last.
extension SharedStoreScript {
  var grantsBody: String {
    switch self {
    // KEYS: rows, order, seen, state. ARGV: most users, milliseconds that a row is kept, an epoch, then for each user its id, iat, rank, seen,
    // value without its { and a row that is none of ours. → how many were put, users and rows that stay in place of others.
    case .putGrants:
      """
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      local old = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', string.format('(%.0f', now - ARGV[2]), 'LIMIT', 0, 50)
      for _, user in ipairs(old) do
        redis.call('HDEL', KEYS[1], user)
        redis.call('ZREM', KEYS[2], user)
        redis.call('ZREM', KEYS[3], user)
      end
      local place = tonumber(redis.call('HGET', KEYS[4], 'place') or '0') or 0
      local count, later = 0, {}
      for n = 4, #ARGV, 6 do
        local user, t, m, s = ARGV[n], tonumber(ARGV[n + 1]), tonumber(ARGV[n + 2]), tonumber(ARGV[n + 3])
        local row = redis.call('HGET', KEYS[1], user)
        local known = row and row ~= ARGV[n + 5] and row or ''
        local rt, rm, rs = string.match(known, '^{"t":(%d+),"m":(%-?%d+),"s":(%d+),')
        rt, rm, rs = tonumber(rt), tonumber(rm), tonumber(rs)
        local isSame = rt == t and rm == m
        if rt and (rt > t or (rt == t and rm < m) or (isSame and rs >= s)) then
          if not isSame then
            later[#later + 1] = user
            later[#later + 1] = row
          end
        elseif row or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[1]) then
          place = place + 1
          local head = string.format('{"t":%s,"m":%s,"s":%s,', ARGV[n + 1], ARGV[n + 2], ARGV[n + 3])
          redis.call('HSET', KEYS[1], user, head .. ARGV[n + 4])
          redis.call('ZADD', KEYS[2], string.format('%.0f', place), user)
          redis.call('ZADD', KEYS[3], ARGV[n + 3], user)
          count = count + 1
        end
      end
      if count > 0 then
        redis.call('HSET', KEYS[4], 'place', string.format('%.0f', place))
        if not redis.call('HGET', KEYS[4], 'epoch') then redis.call('HSET', KEYS[4], 'epoch', ARGV[3]) end
      end
      return {count, later}
      """
    // KEYS: rows, order, state. ARGV: since which place, most. → epoch, place of the last of all, place, users and rows, 1 if there are more.
    default:
      """
      local most = tonumber(ARGV[2])
      local users = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
      local more = #users > 2 * most and 1 or 0
      local out, place = {}, ARGV[1]
      for n = 1, math.min(#users, 2 * most), 2 do
        local row = redis.call('HGET', KEYS[1], users[n])
        if row then
          out[#out + 1] = users[n]
          out[#out + 1] = row
        end
        place = users[n + 1]
      end
      return {redis.call('HGET', KEYS[3], 'epoch') or '', redis.call('HGET', KEYS[3], 'place') or '0', place, out, more}
      """
    }
  }
}
