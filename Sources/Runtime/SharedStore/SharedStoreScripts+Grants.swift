/// Grants of login tokens: a hash of the users' rows, their order of change, when a token last named each, and a hash of numbers
/// and the users who have them. A row is `numbers\n{"t":iat,"s":seen,…}`, or `-\n{…}` if its user was erased. The row decides
/// whether a user has a number; the hash of numbers only finds the row.
extension SharedStoreScript {
  var grantsBody: String {
    switch self {
    // KEYS: rows, order, seen, state, numbers. ARGV: most users, milliseconds that a row is kept, an epoch, most rows in the
    // reply, how many grants, then for each its user, its numbers or - if the user was erased, and its signed line; then users
    // and rows without our signature. → how many were put, users and rows where one was not put as it is.
    case .putGrants:
      """
      local forged, count = {}, tonumber(ARGV[5])
      for n = 6 + 3 * count, #ARGV, 2 do forged[ARGV[n]] = ARGV[n + 1] end
      local position = tonumber(redis.call('HGET', KEYS[4], 'position') or '0') or 0
      local function read(user)
        local value = redis.call('HGET', KEYS[1], user)
        if not value or value == forged[user] then return nil end
        local held, line, t, s = string.match(value, '^([^\\n]*)\\n({"t":(%d+),"s":(%d+),.*)$')
        if held then return {held = held, line = line, t = tonumber(t), s = tonumber(s)} end
      end
      local function write(user, held, line)
        position = position + 1
        redis.call('HSET', KEYS[1], user, held .. '\\n' .. line)
        redis.call('ZADD', KEYS[2], string.format('%.0f', position), user)
      end
      local function has(held, number) return string.find(' ' .. held .. ' ', ' ' .. number .. ' ', 1, true) end
      local function only(held, keeps)
        local out = {}
        for number in string.gmatch(held, '%S+') do
          if keeps(number) then out[#out + 1] = number end
        end
        return table.concat(out, ' ')
      end
      local function owner(number)
        local user = redis.call('HGET', KEYS[5], number)
        local row = user and read(user)
        if row and has(row.held, number) then return user, row end
      end
      local function release(user, held)
        for number in string.gmatch(held, '%S+') do
          if redis.call('HGET', KEYS[5], number) == user then redis.call('HDEL', KEYS[5], number) end
        end
      end
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      local old = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', string.format('(%.0f', now - ARGV[2]), 'LIMIT', 0, 50)
      for _, user in ipairs(old) do
        local row = read(user)
        if row then release(user, row.held) end
        redis.call('HDEL', KEYS[1], user)
        redis.call('ZREM', KEYS[2], user)
        redis.call('ZREM', KEYS[3], user)
      end
      local put, shown, isShown = 0, {}, {}
      local function show(user)
        if isShown[user] or #shown >= tonumber(ARGV[4]) then return end
        isShown[user] = true
        shown[#shown + 1] = user
      end
      for n = 6, 5 + 3 * count, 3 do
        local user, named, line = ARGV[n], ARGV[n + 1], ARGV[n + 2]
        local t, s = string.match(line, '^{"t":(%d+),"s":(%d+),')
        t, s = tonumber(t), tonumber(s)
        local row, erases = read(user), named == '-'
        local held, losers, lost = nil, {}, {}
        if row and row.t == t and (row.held == '-') == erases then
          held = only(named, function(number)
            if has(row.held, number) then return true end
            local other = redis.call('HGET', KEYS[5], number)
            return other and forged[other] and not read(other)
          end)
          if s <= row.s then line, s = row.line, row.s end
        elseif row and (row.t > t or row.t == t and row.held == '-') then
          held = nil
        elseif row or redis.call('HGET', KEYS[1], user) or redis.call('HLEN', KEYS[1]) < tonumber(ARGV[1]) then
          held = only(named, function(number)
            local other, theirs = owner(number)
            if not other or other == user then return true end
            if theirs.t > t or theirs.t == t and other > user then return false end
            if not lost[other] then
              losers[#losers + 1] = other
              lost[other] = {}
            end
            lost[other][number] = true
            return true
          end)
        end
        if held and not (row and row.held == held and row.line == line) then
          if row then release(user, row.held) end
          write(user, held, line)
          redis.call('ZADD', KEYS[3], string.format('%.0f', s), user)
          if not erases then
            for number in string.gmatch(held, '%S+') do redis.call('HSET', KEYS[5], number, user) end
          end
          for _, other in ipairs(losers) do
            local theirs = read(other)
            write(other, only(theirs.held, function(number) return not lost[other][number] end), theirs.line)
          end
          put = put + 1
        end
        if held ~= named then
          show(user)
          for number in string.gmatch(named, '%S+') do
            local other = redis.call('HGET', KEYS[5], number)
            if other then show(other) end
          end
        end
      end
      if put > 0 then
        redis.call('HSET', KEYS[4], 'position', string.format('%.0f', position))
        if not redis.call('HGET', KEYS[4], 'epoch') then redis.call('HSET', KEYS[4], 'epoch', ARGV[3]) end
      end
      local out = {}
      for _, user in ipairs(shown) do
        local value = redis.call('HGET', KEYS[1], user)
        if value then
          out[#out + 1] = user
          out[#out + 1] = value
        end
      end
      return {put, out}
      """
    // KEYS: rows, order, state. ARGV: since which position, most. → epoch, the highest position, the last position read, users
    // and rows, 1 if there are more.
    default:
      """
      local most = tonumber(ARGV[2])
      local users = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, most + 1)
      local more = #users > 2 * most and 1 or 0
      local out, position = {}, ARGV[1]
      for n = 1, math.min(#users, 2 * most), 2 do
        local row = redis.call('HGET', KEYS[1], users[n])
        if row then
          out[#out + 1] = users[n]
          out[#out + 1] = row
        end
        position = users[n + 1]
      end
      return {redis.call('HGET', KEYS[3], 'epoch') or '', redis.call('HGET', KEYS[3], 'position') or '0', position, out, more}
      """
    }
  }
}
