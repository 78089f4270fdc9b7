import TrunklineBytes
import TrunklineSIP

/// The key by which a request inside a dialog finds its leg. Our tag is random and unique, so the peer's need not be part of the
/// key; it is compared afterwards. A spiral, our own outbound call coming back, has the same Call-ID and another local tag.
struct DialogKey: Hashable {
  let callID: String
  let localTag: String
}

/// The dialog state of RFC 3261 §12, from which our requests inside the dialog are written.
struct Dialog: Sendable, Equatable, Codable {
  var callID: String
  var localTag: String
  /// Empty until the peer has sent one, and for RFC 2543 peers.
  var remoteTag = ""
  /// From of our requests, with our tag.
  var localParty: String
  /// To of our requests, with the peer's tag once known.
  var remoteParty: String
  /// Request-URI of our requests: the peer's Contact.
  var remoteTarget: String
  /// The routes in the order of our Route field, as written.
  var routeSet: [String] = []
  /// CSeq of our last request.
  var localSequence: UInt32
  /// CSeq of the peer's last request.
  var remoteSequence: UInt32?
  /// The Via of the peer's requests names another address than their source: there is a NAT between.
  var isTranslated: Bool?
  /// The peer has moved to a connection from another address: requests use it, whatever Contact and Record-Route named before.
  var followsConnection: Bool?

  var key: DialogKey { DialogKey(callID: callID, localTag: localTag) }

  /// A request of the peer. False: it is out of order (RFC 3261 §12.2.2).
  mutating func received(sequence: UInt32) -> Bool {
    if let last = remoteSequence, sequence <= last { return false }
    remoteSequence = sequence
    return true
  }
}

extension Message {
  /// The first Contact's URI; nil if there is none, or we cannot reach it.
  var contactTarget: String? {
    guard let contact = try? contacts.first, contact.uri.scheme == .sip || contact.uri.scheme == .sips,
      contact.uri.whole.count <= Limits.targetBytes
    else { return nil }
    return text(contact.uri.whole)
  }

  /// Record-Route values in their order in the message.
  var recordRouteSet: [String] {
    get throws(ParseError) {
      let routes = try recordRoutes
      guard routes.count <= Limits.routes else { throw ParseError(.listTooLong, at: 0) }
      return routes.map { text($0.whole) }
    }
  }
}

/// The first hop of a request (RFC 3261 §8.1.2, §12.2.1.1): the topmost route, else the target. The flow of the dialog is used
/// instead for a host name, which only the transport could resolve, for an address of this machine or its link that a remote peer
/// names, for any of our own ports, and for an address behind a NAT (`PeerReach`). A connection to the same address is used
/// again.
func nextHop(target: String, routes: [String], base: Flow, own: OwnAddresses, reach: PeerReach = PeerReach()) -> Flow {
  var text = routes.first.map(uriText) ?? target
  if text.isEmpty { text = target }
  guard let flow = hop(to: text, from: base, own: own, reach: reach) else { return base }
  if base.transport.isReliable, flow.remote.ip == base.remote.ip || reach.followsConnection { return base }
  return flow
}

/// The flow to the address in a SIP URI; nil where `nextHop` uses the dialog's flow.
func hop(to text: String, from base: Flow, own: OwnAddresses, reach: PeerReach = PeerReach()) -> Flow? {
  let bytes = Array(text.utf8)
  guard let uri = try? URI(bytes), let ip = IPAddress(bytes.text(uri.host).filter { $0 != "[" && $0 != "]" }),
    uri.scheme != .sips || base.transport == .tls
  else { return nil }
  var flow = base
  // A dialog over TLS does not continue unencrypted.
  if base.transport != .tls, let transport = uri.parameter("transport", in: bytes) {
    flow.transport = TransportProtocol(rawValue: bytes.text(transport).lowercased()) ?? .udp
  }
  flow.remote = SocketAddress(ip, uri.port ?? (flow.transport == .tls ? 5061 : 5060))
  guard !own.isListener(flow.remote), mayGo(to: ip, base, own), reach.leads(to: ip.unmapped, from: base.remote.ip.unmapped, own)
  else { return nil }
  return flow
}

/// Whether the address in a peer's Contact or Record-Route can be routed to. Telephones and PBXs behind a NAT name their address
/// there: they can be reached only over the flow of their requests.
struct PeerReach {
  var rule = TrunkRules.ContactRewriting.auto
  var isTranslated = false
  var followsConnection = false
  var localNetworks = LocalNetworks()

  func leads(to hop: IPAddress, from peer: IPAddress, _ own: OwnAddresses) -> Bool {
    if hop == peer || rule == .never { return true }
    // The flow's own address is of the peer's family.
    if rule == .always || hop.family != peer.family { return false }
    let isPublic = !hop.isPrivate && !hop.isReserved
    if isPublic || own.isHere(hop) { return true }
    guard peer.isPrivate || own.isHere(peer) else { return !hop.isPrivate && peer.isReserved && !isTranslated }
    // A program on this machine, such as a proxy, may act for peers of any network; two private networks may be connected.
    return localNetworks.contains(hop) || !own.isHere(peer) && !isTranslated
  }
}

/// This gateway's addresses: no Contact or Record-Route may lead a request of ours to them.
public struct OwnAddresses: Sendable, Equatable {
  /// Of listeners and media, and the machine's others; in addition to the loopback ones.
  public var addresses: Set<IPAddress>
  /// Of our listeners: signalling, apps, administration.
  public var ports: Set<UInt16>

  public init(addresses: Set<IPAddress> = [], ports: Set<UInt16> = []) {
    self.addresses = Set(addresses.map(\.unmapped))
    self.ports = ports
  }

  func isHere(_ ip: IPAddress) -> Bool { ip.unmapped.isLoopback || addresses.contains(ip.unmapped) }

  /// One of our own ports, whichever peer names it: another program on this machine may not make us send to ourselves, either.
  func isListener(_ address: SocketAddress) -> Bool {
    ports.contains(address.port) && (isHere(address.ip) || address.ip.unmapped.isUnspecified)
  }
}

private func mayGo(to ip: IPAddress, _ base: Flow, _ own: OwnAddresses) -> Bool {
  let (hop, peer) = (ip.unmapped, base.remote.ip.unmapped)
  if own.addresses.contains(hop) { return own.isHere(peer) }
  if hop.isLoopback || hop.isUnspecified || hop.isMulticast || hop == IPAddress(255, 255, 255, 255) { return peer.isLoopback }
  return !hop.isLinkLocal || peer.isLinkLocal
}

/// The address in a SIP URI; nil if it has a host name.
func address(of uriText: String) -> SocketAddress? {
  let bytes = Array(uriText.utf8)
  guard let uri = try? URI(bytes) else { return nil }
  let host = bytes.text(uri.host).filter { $0 != "[" && $0 != "]" }
  return IPAddress(host).map { SocketAddress($0, uri.port ?? 5060) }
}

/// The URI inside a name-addr as written, angle brackets removed.
func uriText(_ route: String) -> String {
  guard let open = route.lastIndex(of: "<"), let close = route[open...].firstIndex(of: ">") else { return route }
  return String(route[route.index(after: open)..<close])
}

/// Whether a route is a loose one (`;lr`).
func isLoose(_ route: String) -> Bool {
  let bytes = Array(uriText(route).utf8)
  return (try? URI(bytes))?.isLooseRoute ?? true
}
