public import TrunklineBytes
import TrunklineSTUN

extension TURNClient {
  /// Handles one whole message of the server, without padding; the result locates a peer's data. Other messages than answers to
  /// our requests and data of permitted peers are ignored. No allocation for data.
  public mutating func receive(_ message: UnsafeRawBufferPointer, at now: Instant, into output: inout Output) -> Payload? {
    guard state == .allocating || state == .allocated, let first = message.first else { return nil }
    if (0x40...0x4f).contains(first) { return channelData(message, now) }
    guard let message = try? STUNMessage(message) else { return ignore() }
    switch (message.messageClass, message.method) {
    case (.indication, .data):
      guard let peer = message.peerAddress, let octets = message.dataRange, isPermitted(peer.ip) else { return ignore() }
      receivedAt = now
      return Payload(peer: peer, octets: octets)
    case (.success, _), (.error, _): answered(message, now, &output)
    case (.request, _), (.indication, _): return ignore()
    }
    return nil
  }

  private mutating func ignore() -> Payload? {
    ignored &+= 1
    return nil
  }

  private func isPermitted(_ ip: IPAddress) -> Bool {
    let ip = ip.unmapped
    return permissions.contains { $0.ip == ip && $0.refusal == nil }
  }

  /// RFC 8656 §12.4; over UDP there may be padding.
  private mutating func channelData(_ message: UnsafeRawBufferPointer, _ now: Instant) -> Payload? {
    guard message.count >= 4 else { return ignore() }
    let (number, length) = (UInt16(message[0]) << 8 | UInt16(message[1]), Int(message[2]) << 8 | Int(message[3]))
    guard 4 + length <= message.count, let channel = channels.first(where: { $0.number == number }) else { return ignore() }
    receivedAt = now
    return Payload(peer: channel.peer, octets: 4..<4 + length)
  }

  private mutating func answered(_ message: STUNMessage, _ now: Instant, _ output: inout Output) {
    guard let index = transactions.firstIndex(where: { $0.id == message.transaction }) else { return _ = ignore() }
    let transaction = transactions[index]
    let isChallenge = message.messageClass == .error && (message.errorCode == 401 || message.errorCode == 438)
    if transaction.isAuthenticated, !isChallenge {
      guard let key = credentials?.key, message.hasIntegrity(key) else { return _ = ignore() }
    }
    transactions.remove(at: index)
    receivedAt = now
    if isChallenge { return challenged(message, transaction, now, &output) }
    message.messageClass == .success
      ? succeeded(message, transaction.purpose, now, &output) : refused(message, transaction.purpose, &output)
  }

  /// RFC 8489 §9.2.5: a first 401 supplies realm and nonce, a second one means that the credentials are wrong.
  private mutating func challenged(_ message: STUNMessage, _ transaction: Transaction, _ now: Instant, _ output: inout Output) {
    if message.errorCode == 401, transaction.isAuthenticated { return fail(.unauthorized, &output) }
    guard transaction.challenges < Limits.challenges else { return fail(.staleNonce, &output) }
    guard let nonce = message.nonce, let realm = message.realm ?? credentials?.realm else { return fail(.malformed, &output) }
    let key = IntegrityKey(username: username, realm: realm, password: password.exposed)
    credentials = Credentials(realm: realm, nonce: nonce, key: key)
    ask(transaction.purpose, challenges: transaction.challenges + 1, now, &output)
  }

  private mutating func succeeded(_ message: STUNMessage, _ purpose: Purpose, _ now: Instant, _ output: inout Output) {
    switch purpose {
    case .allocate:
      guard let address = message.relayedAddress, address.port != 0, !address.ip.isUnspecified, !address.ip.isMulticast else {
        return fail(.malformed, &output)
      }
      relayed = address
      state = .allocated
      guard live(message, now, &output) else { return }
      output.events.append(.allocated(address))
      for permission in permissions { ask(.permit(permission.ip), now, &output) }
    case .refresh: _ = live(message, now, &output)
    case .permit(let ip):
      if let index = permissions.firstIndex(where: { $0.ip == ip }) {
        permissions[index].refreshAt = now + Limits.permissionRefresh
      }
    case .bind(let number):
      guard let index = channels.firstIndex(where: { $0.number == number }) else { return }
      channels[index].isBound = true
      channels[index].refreshAt = now + Limits.channelRefresh
    }
  }

  /// False: the allocation's lifetime is zero.
  private mutating func live(_ message: STUNMessage, _ now: Instant, _ output: inout Output) -> Bool {
    let seconds = min(message.lifetimeSeconds ?? Limits.usualLifetimeSeconds, Limits.lifetimeSeconds)
    guard seconds > 0 else {
      fail(.allocationMismatch, &output)
      return false
    }
    let life = Duration.seconds(Int64(seconds))
    refreshAt = now + max(life / 2, life - Limits.refreshMargin)
    return true
  }

  private mutating func refused(_ message: STUNMessage, _ purpose: Purpose, _ output: inout Output) {
    let why = message.errorCode == 300 ? TURNFailure.tryAlternate(message.alternateServer) : TURNFailure(message.errorCode)
    switch purpose {
    case .allocate, .refresh: fail(why, &output)
    case .permit where why == .allocationMismatch, .bind where why == .allocationMismatch: fail(why, &output)
    case .permit(let ip):
      guard let index = permissions.firstIndex(where: { $0.ip == ip }) else { return }
      permissions[index].refusal = message.errorCode ?? 0
      output.events.append(.refused(ip, message.errorCode ?? 0))
      if permissions.allSatisfy({ $0.refusal != nil }) { fail(why, &output) }
    case .bind(let number):
      if let index = channels.firstIndex(where: { $0.number == number }) { channels[index].isBound = false }
    }
  }
}
