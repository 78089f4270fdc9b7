public import TrunklineAppProtocol

/// Properties of a call that the app makes, besides the callee.
public struct CallOptions: Sendable, Equatable {
  /// The user's number that the callee sees; nil: the first.
  public var from: Handle?
  /// The user's account that the call belongs to; nil: the gateway's default.
  public var account: String?
  /// The caller's location: a PIDF-LO document (RFC 4119) of at most 8,192 bytes. Only an emergency call carries it (RFC 6442).
  public var location: String?
  /// Parameters for the callee: header fields that the trunk's `parameters` lists, or values for the called user's app.
  public var parameters: CallParameters?

  public init(
    from: Handle? = nil, account: String? = nil, location: String? = nil, parameters: CallParameters? = nil
  ) {
    (self.from, self.account, self.location, self.parameters) = (from, account, location, parameters)
  }
}

/// Properties of an incoming call besides the caller: from its push, and from the gateway's offer, which is complete.
public struct CallDetails: Sendable, Equatable {
  /// The user's number that was called.
  public var called: Handle?
  public var parameters: CallParameters?
  /// For a call from a trunk: the trunk's name, the verification result for the caller (RFC 8224), and the numbers that the
  /// call was diverted from.
  public var pstn: CallOffer.PSTN?

  public init(called: Handle? = nil, parameters: CallParameters? = nil, pstn: CallOffer.PSTN? = nil) {
    (self.called, self.parameters, self.pstn) = (called, parameters, pstn)
  }
}
