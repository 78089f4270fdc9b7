import TrunklineBytes

/// The flow on which the requests of a leg go out. The flow of a request in the dialog leads back to its sender: a load balancer
/// that drains, a PBX that reconnects and a NAT that forgets change it during the call.
///
/// | state | request on another flow of this transport | connection lost | our address moved |
/// |---|---|---|---|
/// | first flow | followed; the first flow is remembered | the peer's listening port | the new flow, `hasMoved` |
/// | followed | followed | the first flow; its listening port if that connection was lost, too | the new flow, `hasMoved` |
///
/// A request on another transport does not count: a dialog over TLS does not continue unencrypted, and only a message too long for a
/// datagram comes by TCP. A lost connection that is not the leg's changes nothing.
struct LegPath {
  /// The flow on which the INVITE was received or sent, or the one that the peer has changed to.
  private(set) var flow: Flow
  /// It uses another address of ours than it began at, and follows the route to the peer from then on.
  private(set) var hasMoved = false
  /// The first flow, if the peer has changed to another connection since.
  private var home: Flow?

  init(_ flow: Flow) { self.flow = flow }

  /// A request of the peer. True if the flow changes.
  mutating func follow(_ source: Flow) -> Bool {
    guard source != flow, source.transport == flow.transport else { return false }
    if home == nil { home = flow }
    flow = source
    return true
  }

  /// The INVITE goes to another server, or by another transport.
  mutating func use(_ next: Flow) { flow = next }

  /// Our address has changed.
  mutating func move(to next: Flow) {
    flow = next
    hasMoved = true
  }

  func uses(connectionTo remote: SocketAddress) -> Bool {
    flow.transport.isReliable && (flow.remote == remote || home?.remote == remote)
  }

  /// - Parameter listening: where the peer of a flow accepts connections.
  /// - Returns: the flow has changed.
  mutating func connectionLost(to remote: SocketAddress, _ listening: (Flow) -> Flow) -> Bool {
    guard flow.transport.isReliable else { return false }
    if let home, home.remote == remote { self.home = listening(home) }
    guard flow.remote == remote else { return false }
    flow = home ?? listening(flow)
    home = nil
    return true
  }
}
