public import AppProtocol

/// Options of a call that the app makes, beside the callee.
public struct CallOptions: Sendable, Equatable {
  /// Which of the user's numbers the callee sees; nil: the first.
  public var from: Handle?
  /// Which of the user's accounts the call belongs to; nil: the gateway's default.
  public var account: String?
  /// Where the caller is: a PIDF-LO document (RFC 4119) of at most 8,192 bytes. Only an emergency call carries it (RFC 6442).
  public var location: String?
  /// What the other side is told beside: header fields that the trunk's `parameters` lists, or the called user's app gets.
  public var parameters: CallParameters?

  public init(
    from: Handle? = nil, account: String? = nil, location: String? = nil, parameters: CallParameters? = nil
  ) {
    (self.from, self.account, self.location, self.parameters) = (from, account, location, parameters)
  }
}

/// What is told of an incoming call beside who calls: by its push, and by the gateway's offer, which is whole.
public struct CallDetails: Sendable, Equatable {
  /// Which of the user's numbers was called.
  public var called: Handle?
  public var parameters: CallParameters?
  /// Of a call of a trunk: its name, a verifier's statement on the caller (RFC 8224) and the previously called numbers.
  public var pstn: CallOffer.PSTN?

  public init(called: Handle? = nil, parameters: CallParameters? = nil, pstn: CallOffer.PSTN? = nil) {
    (self.called, self.parameters, self.pstn) = (called, parameters, pstn)
  }
}
