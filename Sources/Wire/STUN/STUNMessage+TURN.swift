public import TrunklineBytes

/// The attributes of TURN (RFC 8656 §18) and of long-term credentials (RFC 8489 §9.2) in a message, found without allocation.
struct TURNAttributes {
  var relayed: SocketAddress?
  var peer: SocketAddress?
  var alternate: SocketAddress?
  var channel: UInt16?
  var lifetime: UInt32?
  var family: IPAddress.Family?
  var data: Range<Int>?
  var realm: Range<Int>?
  var nonce: Range<Int>?
}

extension STUNMessage {
  /// XOR-RELAYED-ADDRESS: our address at the server.
  public var relayedAddress: SocketAddress? { turn.relayed }
  /// XOR-PEER-ADDRESS, the first one.
  public var peerAddress: SocketAddress? { turn.peer }
  /// ALTERNATE-SERVER, with error 300.
  public var alternateServer: SocketAddress? { turn.alternate }
  public var channelNumber: UInt16? { turn.channel }
  /// LIFETIME.
  public var lifetimeSeconds: UInt32? { turn.lifetime }
  /// REQUESTED-ADDRESS-FAMILY.
  public var requestedFamily: IPAddress.Family? { turn.family }
  /// Range of the value of DATA in the message.
  public var dataRange: Range<Int>? { turn.data }
  /// A copy.
  public var realm: [UInt8]? { turn.realm.map { Array(bytes[$0]) } }
  /// A copy.
  public var nonce: [UInt8]? { turn.nonce.map { Array(bytes[$0]) } }

  /// Returns false if the type is none of these.
  mutating func readTURN(_ type: UInt16, at offset: Int, _ length: Int) throws(STUNError) -> Bool {
    let value = offset + 4
    func require(_ fits: Bool) throws(STUNError) { if !fits { throw .badAttribute(offset: offset) } }
    switch type {
    case Attribute.xorRelayedAddress:
      let address = readXORAddress(at: value, length: length)
      try require(address != nil)
      turn.relayed = turn.relayed ?? address
    case Attribute.xorPeerAddress:
      let address = readXORAddress(at: value, length: length)
      try require(address != nil)
      turn.peer = turn.peer ?? address
    case Attribute.alternateServer:
      let address = readAddress(at: value, length: length)
      try require(address != nil)
      turn.alternate = turn.alternate ?? address
    case Attribute.channelNumber:
      try require(length == 4)
      turn.channel = turn.channel ?? bytes.bigEndian16(value)
    case Attribute.lifetime:
      try require(length == 4)
      turn.lifetime = turn.lifetime ?? bytes.bigEndian32(value)
    case Attribute.requestedAddressFamily:
      try require(length == 4)
      turn.family = turn.family ?? (bytes[value] == 2 ? .v6 : .v4)
    case Attribute.data: turn.data = turn.data ?? value..<(value + length)
    case Attribute.realm:
      try require(length <= Limits.realmBytes)
      turn.realm = turn.realm ?? value..<(value + length)
    case Attribute.nonce:
      try require(length <= Limits.realmBytes)
      turn.nonce = turn.nonce ?? value..<(value + length)
    case Attribute.requestedTransport: try require(length == 4)
    default: return false
    }
    return true
  }

  /// An address that is not XORed (RFC 8489 §14.1).
  private func readAddress(at value: Int, length: Int) -> SocketAddress? {
    guard length >= 8 else { return nil }
    let port = bytes.bigEndian16(value + 2)
    switch (bytes[value + 1], length) {
    case (1, 8): return SocketAddress(IPAddress(v4: bytes.bigEndian32(value + 4)), port)
    case (2, 20): return SocketAddress(IPAddress(v6High: bytes.bigEndian64(value + 4), low: bytes.bigEndian64(value + 12)), port)
    default: return nil
    }
  }
}
