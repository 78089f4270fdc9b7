public import AppProtocol

/// What the app says of a call that it makes, beside whom it calls.
public struct CallOptions: Sendable, Equatable {
  /// Which of the user's numbers the callee sees; nil: the first.
  public var from: Handle?
  /// Which of the user's accounts the call belongs to; nil: the gateway's default.
  public var account: String?
  /// Where the caller is: a PIDF-LO document (RFC 4119) of at most 8,192 bytes. Only an emergency call carries it (RFC 6442).
  public var location: String?

  public init(from: Handle? = nil, account: String? = nil, location: String? = nil) {
    (self.from, self.account, self.location) = (from, account, location)
  }
}
