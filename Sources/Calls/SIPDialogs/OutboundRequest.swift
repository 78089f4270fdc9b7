public import TrunklineSIP

/// The number of a request outside any dialog, which the caller assigns.
public struct RequestID: Hashable, Sendable, CustomStringConvertible {
  public let raw: UInt64
  public init(_ raw: UInt64) { self.raw = raw }
  public var description: String { "request-\(raw)" }
}

/// REGISTER or OPTIONS toward a trunk. It is sent to `trunk.target` only: the caller chooses the next server.
public struct OutboundRequest: Sendable {
  public var trunk: TrunkPeer
  public var method: Method
  /// Request-URI.
  public var uri: String
  /// The URIs of From and To; From is our own address if nil.
  public var from: String?
  public var to: String
  public var callID: String
  /// CSeq of the first try; each answer to a challenge uses the next one.
  public var sequence: UInt32
  /// The user part of our Contact; nil: that of the trunk's rules.
  public var contactUser: String?
  /// `Expires` of a REGISTER.
  public var expires: Int?
  /// A Contact as in `RequestOutcome.contact`: the REGISTER removes this binding (RFC 3261 §10.2.2) and names no other.
  public var removedContact: String?

  public init(
    trunk: TrunkPeer, method: Method, uri: String, from: String? = nil, to: String, callID: String, sequence: UInt32 = 1,
    contactUser: String? = nil, expires: Int? = nil
  ) {
    (self.trunk, self.method, self.uri, self.from, self.to) = (trunk, method, uri, from, to)
    (self.callID, self.sequence, self.contactUser, self.expires) = (callID, sequence, contactUser, expires)
  }
}

/// The final response to an `OutboundRequest`, or why there is none.
public struct RequestOutcome: Sendable, Equatable {
  /// 408 after a time-out, 503 with `byTransport` when it could not be sent.
  public var code: Int
  public var byTransport = false
  /// What the peer did in such a failure, as far as it is known.
  public var peer: UserAgent.PeerFailure?
  /// The peer has sent the code.
  public var isResponse = false
  /// What the registrar granted our Contact (RFC 3261 §10.2.4): its `expires`, else the Expires header; nil if it names neither.
  public var expires: Int?
  /// Service-Route of a 2xx to REGISTER (RFC 3608); empty: it has none; nil: the routes are malformed, too many or too long.
  public var serviceRoutes: [String]? = []
  /// Min-Expires of a 423.
  public var minimumExpires: Int?
  public var retryAfter: Int?
  /// The CSeq of the last try.
  public var sequence: UInt32
  /// The Contact of a REGISTER, as it was written.
  public var contact: String?

  /// Why there was no response; nil if there was one, or if nothing is known.
  public var failure: LocalFailure? {
    if isResponse { return nil }
    return byTransport || code == 408 ? LocalFailure(byTransport: byTransport, peer) : nil
  }

  public init(code: Int, sequence: UInt32 = 1) { (self.code, self.sequence) = (code, sequence) }
}
