public import TrunklineBytes
import TrunklineSTUN

extension TURNClient {
  /// When `handleTimeout` is due next; nil: never.
  public var nextDeadline: Instant? {
    var due = refreshAt
    func consider(_ other: Instant?) { if let other { due = min(due ?? other, other) } }
    for transaction in transactions { consider(transaction.dueAt) }
    for permission in permissions { consider(permission.refreshAt) }
    for channel in channels { consider(channel.refreshAt) }
    consider(silentAt)
    return state == .allocating || state == .allocated ? due : nil
  }

  /// When the server will have been silent for too long.
  private var silentAt: Instant? {
    guard channels.contains(where: \.isBound), !transactions.contains(where: { $0.purpose == .refresh }) else { return nil }
    return receivedAt + Limits.silence
  }

  /// Retransmits and refreshes what is due. Safe to call at any time.
  public mutating func handleTimeout(at now: Instant, into output: inout Output) {
    guard state == .allocating || state == .allocated else { return }
    for index in transactions.indices where transactions[index].dueAt <= now {
      guard !isStream, transactions[index].sends < Limits.transmissions else { return fail(.noAnswer, &output) }
      transactions[index].sends += 1
      let isLast = transactions[index].sends == Limits.transmissions
      transactions[index].interval = transactions[index].interval * 2
      transactions[index].dueAt = now + (isLast ? Limits.lastWait : transactions[index].interval)
      output.messages.append(transactions[index].bytes)
    }
    func isDue(_ instant: Instant?) -> Bool { instant.map { $0 <= now } ?? false }
    if isDue(refreshAt) || isDue(silentAt) {
      refreshAt = nil
      ask(.refresh, now, &output)
    }
    for index in permissions.indices where isDue(permissions[index].refreshAt) {
      permissions[index].refreshAt = nil
      ask(.permit(permissions[index].ip), now, &output)
    }
    for index in channels.indices where isDue(channels[index].refreshAt) {
      channels[index].refreshAt = nil
      ask(.bind(channels[index].number), now, &output)
    }
  }

  mutating func ask(_ purpose: Purpose, challenges: Int = 0, _ now: Instant, _ output: inout Output) {
    transactions.removeAll { $0.purpose == purpose }
    let id = TransactionID(random: random)
    // realm and nonce are too long for one message
    guard let bytes = request(purpose, id) else { return fail(.malformed, &output) }
    let wait = isStream ? Limits.streamAnswer : Limits.firstRetransmission
    transactions.append(
      Transaction(
        purpose: purpose, id: id, bytes: bytes, isAuthenticated: credentials != nil, challenges: challenges, dueAt: now + wait))
    output.messages.append(bytes)
  }

  /// - Parameter isLast: a Refresh that ends the allocation.
  func request(_ purpose: Purpose, _ id: TransactionID, isLast: Bool = false) -> [UInt8]? {
    let method: STUNMethod =
      switch purpose {
      case .allocate: .allocate
      case .refresh: .refresh
      case .permit: .createPermission
      case .bind: .channelBind
      }
    var bytes = [UInt8](repeating: 0, count: Limits.messageBytes)
    let count = bytes.withUnsafeMutableBytes { buffer -> Int? in
      var writer = STUNWriter(.request, method: method, transaction: id, into: buffer)
      switch purpose {
      case .allocate:
        writer.addRequestedTransportUDP()
        // a server allocates IPv4 by default (RFC 8656 §7.1)
        if family == .v6 { writer.addRequestedFamily(.v6) }
      case .refresh: if isLast { writer.addLifetime(seconds: 0) }
      case .permit(let ip): writer.addPeer(SocketAddress(ip, 0))
      case .bind(let number):
        guard let channel = channels.first(where: { $0.number == number }) else { return nil }
        writer.addChannel(number)
        writer.addPeer(channel.peer)
      }
      if let credentials {
        writer.addUsername(username)
        writer.addRealm(credentials.realm)
        writer.addNonce(credentials.nonce)
        writer.addIntegrity(credentials.key)
      }
      return writer.finish()
    }
    return count.map { Array(bytes[..<$0]) }
  }
}
