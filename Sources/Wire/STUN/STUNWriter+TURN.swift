public import TrunklineBytes

/// The attributes of TURN (RFC 8656 §18) and of long-term credentials (RFC 8489 §9.2).
extension STUNWriter {
  /// USERNAME as it is.
  public mutating func addUsername(_ name: [UInt8]) { addText(Attribute.username, name, atMost: Limits.usernameBytes) }
  public mutating func addRealm(_ realm: [UInt8]) { addText(Attribute.realm, realm, atMost: Limits.realmBytes) }
  public mutating func addNonce(_ nonce: [UInt8]) { addText(Attribute.nonce, nonce, atMost: Limits.realmBytes) }

  private mutating func addText(_ type: UInt16, _ text: [UInt8], atMost limit: Int) {
    guard text.count <= limit else { return hasFailed = true }
    begin(type, text.count)
    text.withUnsafeBytes { put($0) }
    pad()
  }

  /// REQUESTED-TRANSPORT: UDP, which is 17 among IP's protocols.
  public mutating func addRequestedTransportUDP() {
    begin(Attribute.requestedTransport, 4)
    put32(17 << 24)
  }
  public mutating func addRequestedFamily(_ family: IPAddress.Family) {
    begin(Attribute.requestedAddressFamily, 4)
    put32(family == .v4 ? 1 << 24 : 2 << 24)
  }
  public mutating func addLifetime(seconds: UInt32) {
    begin(Attribute.lifetime, 4)
    put32(seconds)
  }
  public mutating func addChannel(_ number: UInt16) {
    begin(Attribute.channelNumber, 4)
    put32(UInt32(number) << 16)
  }
  public mutating func addPeer(_ address: SocketAddress) { addXORAddress(Attribute.xorPeerAddress, address) }
  public mutating func addRelayedAddress(_ address: SocketAddress) { addXORAddress(Attribute.xorRelayedAddress, address) }

  /// ALTERNATE-SERVER, which is not exclusive-or anything.
  public mutating func addAlternateServer(_ address: SocketAddress) {
    let ip = address.ip.unmapped
    begin(Attribute.alternateServer, ip.family == .v4 ? 8 : 20)
    put16(ip.family == .v4 ? 1 : 2)
    put16(address.port)
    if ip.family == .v4 {
      put32(UInt32(truncatingIfNeeded: ip.low))
    } else {
      put64(ip.high)
      put64(ip.low)
    }
  }

  /// DATA: what is relayed.
  public mutating func addData(_ bytes: UnsafeRawBufferPointer) {
    begin(Attribute.data, bytes.count)
    put(bytes)
    pad()
  }
}
